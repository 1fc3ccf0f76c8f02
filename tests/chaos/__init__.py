# SPDX-License-Identifier: Apache-2.0
"""Chaos: jobs with faults drawn from a seed, and what must hold whatever the fault was. docs/testing.md has the page.

Read plan.py first (what is drawn), then judge.py (what must hold), faults.py and job.py (how it is done), campaign.py (the command).
"""
