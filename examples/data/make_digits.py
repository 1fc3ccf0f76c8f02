#!/usr/bin/env python3
# Writes digits.txt from the digits that scikit-learn ships; run once, its result is committed.
# SPDX-License-Identifier: Apache-2.0
"""Usage: pip install scikit-learn; ./make_digits.py > digits.txt"""
import sys

from sklearn.datasets import load_digits

# Pixels are 0..16, so one character of base 17 holds one pixel and the file stays readable.
BASE_17 = "0123456789abcdefg"


def main() -> None:
    digits = load_digits()
    images = digits.data.astype(int)
    print(f"hvrun-digits 1 {len(images)} {images.shape[1]} {len(digits.target_names)}")
    for label, image in zip(digits.target, images):
        if image.min() < 0 or image.max() > 16:
            sys.exit("a pixel lies outside 0..16: scikit-learn's file has changed")
        print(int(label), "".join(BASE_17[pixel] for pixel in image))


if __name__ == "__main__":
    main()
