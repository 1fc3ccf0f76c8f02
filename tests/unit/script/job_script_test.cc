// Tests of the three schedulers' scripts, whole and in what is easily got wrong.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/script/job_script.h"

#include <doctest/doctest.h>

#include "launcher/script/directive.h"

using namespace hv::launcher;
using namespace std::chrono_literals;

namespace {

Site lab(BatchScheduler scheduler, const char* gpus) {
  Site site;
  site.name = "lab";
  site.scheduler = scheduler;
  site.gpu_request = gpus;
  site.modules = {"base"};
  site.options = {"--site-option"};
  Partition partition;
  partition.name = "gpu";
  partition.queue = "fast";
  partition.constraint = "big";
  partition.cores = 40;
  partition.gpus = 4;
  partition.gpu_model = "GPU of 32 GB";
  partition.memory_gb = 192;
  partition.modules = {"arch/it's"};
  site.partitions = {partition};
  return site;
}

JobRequest job() {
  JobRequest request;
  request.ranks = 7;
  request.account = "abc";
  request.time = 2h;
  request.signal = EarlySignal{"USR1", 90s};
  request.output = "log.%j";
  request.modules = {"mine"};
  request.options = {"--mem=1G"};
  request.hvrun.typed = {"-x", "A=b c"};
  request.program = {"./a dir/train", "--name", "it's $HOME"};
  return request;
}

std::string script(const JobRequest& request, const Site& site) {
  return job_script(request, site, plan_script(request, site));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string kLoading =
    "set -e\nmodule purge\nmodule load base\nmodule load 'arch/it'\\''s'\nmodule load mine\n"
    "set -u\n";
const std::string kProgram = "'./a dir/train' --name 'it'\\''s $HOME'";

}  // namespace

TEST_CASE("a script for Slurm") {
  Site site = lab(BatchScheduler::kSlurm, "gpu:{gpus}");
  site.hint = "nomultithread";
  site.partitions[0].threads_per_core = 2;
  JobRequest request = job();
  request.qos = "q";
  CHECK(script(request, site) ==
        "#!/bin/bash\n"
        "# Written by 'hvrun script' for site lab, partition gpu: 4 x GPU of 32 GB, 40 cores, "
        "192 GB a node.\n"
        "# 7 ranks use 7 of the 8 GPUs of this job: it has 2 nodes with 4 each.\n"
        "#SBATCH --job-name=train\n"
        "#SBATCH --nodes=2\n"
        "#SBATCH --ntasks-per-node=4\n"
        "#SBATCH --gres=gpu:4\n"
        "#SBATCH --cpus-per-task=10\n"
        "#SBATCH --hint=nomultithread\n"
        "#SBATCH --partition=fast\n"
        "#SBATCH --constraint=big\n"
        "#SBATCH --account=abc\n"
        "#SBATCH --qos=q\n"
        "#SBATCH --time=02:00:00\n"
        "#SBATCH --output=log.%j\n"
        "#SBATCH --signal=USR1@90\n"
        "#SBATCH --no-requeue\n"
        "#SBATCH --site-option\n"
        "#SBATCH --mem=1G\n" +
            kLoading + "exec hvrun -np 7 -x 'A=b c' -- " + kProgram + "\n");
}

TEST_CASE("a script for PBS goes by its own clock") {
  const std::string text = script(job(), lab(BatchScheduler::kPbs, "ngpus={gpus}"));
  CHECK(text.find("#!/bin/bash\n"
                  "# Written by 'hvrun script' for site lab, partition gpu: 4 x GPU of 32 GB, 40 "
                  "cores, 192 GB a node.\n"
                  "# 7 ranks use 7 of the 8 GPUs of this job: it has 2 nodes with 4 each.\n"
                  "#PBS -N train\n"
                  "#PBS -l select=2:ncpus=40:mpiprocs=4:ngpus=4:big\n"
                  "#PBS -l place=scatter\n"
                  "#PBS -q fast\n"
                  "#PBS -A abc\n"
                  "#PBS -l walltime=02:00:00\n"
                  "#PBS -j oe\n"
                  "#PBS -S /bin/bash\n"
                  "#PBS -o log.%j\n"
                  "#PBS -r n\n"
                  "#PBS --site-option\n"
                  "#PBS --mem=1G\n" +
                  kLoading + "cd \"${PBS_O_WORKDIR:-.}\"\n") == 0);
  CHECK(has(text, "sleep 7110 &"));
  CHECK(has(text, "kill -USR1 $$"));
  CHECK(has(text, "hvrun -np 7 -x 'A=b c' -- " + kProgram + " &\n"));
  CHECK(!has(text, "qrerun"));
}

TEST_CASE("a script for LSF has a slot for each core, and hvrun the number of ranks") {
  JobRequest request = job();
  request.requeues = 3;
  const std::string text = script(request, lab(BatchScheduler::kLsf, "num={gpus}"));
  CHECK(has(text,
            "#BSUB -J train\n"
            "#BSUB -n 80\n"
            "#BSUB -R \"span[ptile=40]\"\n"
            "#BSUB -gpu \"num=4\"\n"
            "#BSUB -R \"select[big]\"\n"
            "#BSUB -q fast\n"
            "#BSUB -P abc\n"
            "#BSUB -W 02:00\n"
            "#BSUB -o log.%j\n"
            "#BSUB -r\n"
            "#BSUB -wt \"00:02\"\n"
            "#BSUB -wa \"USR1\"\n"
            "#BSUB --site-option\n"));
  CHECK(has(text, "hvrun -np 7 --npernode 4 -x 'A=b c' -- " + kProgram + " &\n"));
  CHECK(has(text, "brequeue \"$LSB_JOBID\""));
  CHECK(has(text, "-ge 3 ]"));
}

TEST_CASE("where nothing is known of the nodes the scheduler spreads the ranks") {
  Site site;
  site.name = "any";
  site.partitions = {Partition{}};
  site.partitions[0].name = "default";
  JobRequest request;
  request.ranks = 3;
  request.program = {"-"};
  const std::string slurm = script(request, site);
  CHECK(has(slurm, "#SBATCH --ntasks=3\n#SBATCH --no-requeue\nset -eu\nexec hvrun -- -\n"));
  CHECK(has(slurm, "--job-name=job_-\n"));
  site.scheduler = BatchScheduler::kPbs;
  CHECK(has(script(request, site), "-l select=3:ncpus=1:mpiprocs=1\n#PBS -l place=free\n"));
  site.scheduler = BatchScheduler::kLsf;
  CHECK(has(script(request, site), "#BSUB -n 3\n#BSUB -o %J.out\n#BSUB -rn\n"));
}

TEST_CASE("Slurm counts threads where no hint says otherwise") {
  Site site = lab(BatchScheduler::kSlurm, "gpu:{gpus}");
  site.partitions[0].threads_per_core = 2;
  CHECK(has(script(job(), site), "--cpus-per-task=20\n"));
}

TEST_CASE("a job that comes back has the signal sent to its script, and its output is kept") {
  JobRequest request = job();
  request.requeues = 5;
  const Site site = lab(BatchScheduler::kSlurm, "gpu:{gpus}");
  std::string text = script(request, site);
  CHECK(has(text, "#SBATCH --signal=B:USR1@90\n#SBATCH --requeue\n#SBATCH --open-mode=append\n"));
  CHECK(has(text, "kill -USR1 \"$hvrun\""));
  CHECK(has(text, "-ge 5 ]"));
  request.signal.reset();
  text = script(request, site);
  CHECK(has(text, "#SBATCH --signal=B:USR1@60\n"));
  CHECK(has(text, "kill -TERM \"$hvrun\""));  // ranks that know of no USR1 would die of it
  request.hvrun.output_directory = "my logs";
  for (const BatchScheduler scheduler :
       {BatchScheduler::kSlurm, BatchScheduler::kPbs, BatchScheduler::kLsf}) {
    text = script(request, lab(scheduler, "gpu:{gpus}"));
    CHECK(has(text, " restarts=$"));
    CHECK(has(text, " --output-dir 'my logs'/run.\"$restarts\" -- "));
  }
}

TEST_CASE("a directive takes no more than it says") {
  for (const char* text : {"gpu_p13", "abc@v100", "a&b", "[a|b]*2", "%x-%j.out", "qos_gpu-t3"})
    CHECK_MESSAGE(is_directive_word(text), text);
  for (const char* text : {"", "a b", "a\nb", "a\tb", "'a'", "\"a\"", "a\\b", "#a", "-a", "$a",
                           "`a`", "a;b", "a<b", "\x7f", "\xc3\xa9"})
    CHECK_MESSAGE(!is_directive_word(text), text);
  CHECK(is_directive_line("--comment='two words'"));
  CHECK(!is_directive_line("--comment=a\n#SBATCH --b"));
  CHECK(!is_directive_line("mem=1G"));
  CHECK(!is_directive_line("-"));
  CHECK(!is_directive_line("-" + std::string(kMostDirectiveBytes, 'a')));
}

TEST_CASE("a job is named after its script or module, without the suffix") {
  JobRequest request = job();
  const auto name = [&request](const std::string& main_file) {
    request.hvrun.main_file = main_file;
    return job_name(request, 64);
  };
  CHECK(name("train.py") == "train");
  CHECK(name("/data/my run/train.sh") == "train");
  CHECK(name("pkg.train") == "pkg.train");
  CHECK(name(".py") == "job_.py");
  CHECK(name("") == "train");
  request.job_name = "mine";
  CHECK(name("train.py") == "mine");
}

TEST_CASE("GPUs that no rank uses are told, where nodes are rounded up or whole") {
  for (const BatchScheduler scheduler :
       {BatchScheduler::kSlurm, BatchScheduler::kPbs, BatchScheduler::kLsf}) {
    Site site = lab(scheduler, "gpus={gpus}");
    JobRequest request = job();
    const auto note = [&](int ranks) {
      request.ranks = ranks;
      const std::string text = script(request, site);
      const std::size_t begin = text.find(" use ");
      return begin == std::string::npos ? "" : text.substr(begin, text.find(':', begin) - begin);
    };
    CHECK(note(7) == " use 7 of the 8 GPUs of this job");
    CHECK(note(6) == "");  // 2 nodes with 3 GPUs each
    CHECK(note(8) == "");
    site.partitions[0].is_exclusive = true;
    CHECK(note(6) == " use 6 of the 8 GPUs of this job");
    request.gpus_per_rank = 0;
    CHECK(note(6) == "");
  }
}
