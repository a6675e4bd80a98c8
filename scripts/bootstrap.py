"""Sets everything up in `.venv`: Python packages, ROS 2 from wheels, the messages.

`make setup` runs it, on any Python from 3.8 on, with the standard library alone. What is done
already is not done again: a stamp holds a digest of the inputs of each step. A failure ends with
one line that says what to do; the full output is in `.ros/setup.log`.
"""

import configparser
import fcntl
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
WORK = ROOT / ".ros"
LOG = WORK / "setup.log"
STAMP = VENV / ".forewarn-setup.json"
PIP = (PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--prefer-binary")
# Copies, not links into uv's cache: repair_wheels writes into what is installed.
UV = (
    VENV / "bin" / "uv", "pip", "install", "--no-config", "--python", PYTHON, "--link-mode", "copy",
)  # fmt: skip
PYTHON_PACKAGES = ("forewarn", "forewarn_ros", "monitor_node", "apollo_bridge", "agent_guard")
# 3.10 first: it is Humble's, and the only one for which Apollo's Cyber RT has a wheel.
MINORS = (10, 11, 12, 13)
NEEDED = "import ctypes, ensurepip, ssl, venv"
# Inherited from a sourced ROS 2 or another environment, these would mix two installations.
FOREIGN = (
    "AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH", "COLCON_PREFIX_PATH", "LD_LIBRARY_PATH",
    "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
)  # fmt: skip


class SetupError(Exception):
    """What went wrong and what the user can do about it, in one line."""


def main():
    """Run the steps that are due and return the exit code."""
    try:
        WORK.mkdir(exist_ok=True)
        with open(WORK / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            set_up()
    except SetupError as error:
        print(f"setup: error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"setup: error: {error}: check permissions and disk space", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted: `make setup` goes on where it stopped", file=sys.stderr)
        return 130
    return 0


def set_up():
    """Run each step whose inputs have changed since it last succeeded."""
    check_platform()
    done = read_stamp()
    steps = [
        ("python", python_inputs, install_python_packages),
        ("ros", ros_inputs, build_ros_packages),
    ]
    due = [(name, inputs, run) for name, inputs, run in steps if done.get(name) != digest(inputs())]
    if not due and PYTHON.exists():
        return
    LOG.write_text("")
    if ensure_venv(done):
        done, due = {"prefix": str(VENV)}, steps
    # What is imported from here on lies in .venv: it is compiled once, and not by each process.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name, inputs, run in due:
        before = digest(inputs())  # what changes meanwhile is due the next time
        run()
        done[name] = before
        STAMP.write_text(json.dumps(done, indent=1) + "\n")
    say("ready: .venv/bin/forewarn --help")


def python_inputs():
    """Files that decide which Python packages are installed, and how."""
    files = [*ROOT.glob("requirements/lock/*.txt"), *ROOT.glob("scripts/ros_environment.py")]
    for package in PYTHON_PACKAGES:
        files += [ROOT / package / name for name in ("setup.py", "setup.cfg", "package.xml")]
        files += (ROOT / package / "resource").iterdir()
        files += (ROOT / package).glob("src/**/*.c")
    return [*files, Path(__file__).resolve()]


def ros_inputs():
    """Files that colcon builds or installs."""
    folders = [ROOT / "ros2_ws" / "src", ROOT / "launch", ROOT / "config"]
    files = [f for folder in folders for f in folder.rglob("*") if f.is_file()]
    return [f for f in files if "__pycache__" not in f.parts] + python_inputs()


def digest(files):
    """Digest of the names and contents of files."""
    total = hashlib.sha256()
    for path in sorted(set(files)):
        total.update(str(path.relative_to(ROOT)).encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def read_stamp():
    """Return what was done in this place; nothing if the environment was moved or copied here."""
    try:
        done = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return done if done.get("prefix") == str(VENV) else {}


def check_platform():
    """Refuse what no wheel exists for before anything is downloaded."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise SetupError(
            "ROS 2 wheels exist for Linux on x86_64 only, this is "
            f"{sys.platform} on {platform.machine()}: use the Dockerfile or a machine with ROS 2"
        )


def ensure_venv(done):
    """Make `.venv` unless a working one is there; true if it was made anew."""
    moved = STAMP.exists() and not done
    if not moved and version_of(PYTHON):
        done["prefix"] = str(VENV)
        return False
    if VENV.is_symlink():  # to make it anew would empty the folder that it leads to
        raise SetupError(f".venv is a link to {os.path.realpath(VENV)}: remove it (`rm {VENV}`)")
    interpreter = find_python()
    say(f"making .venv with {interpreter}")
    advice = f"run `{interpreter} -m venv .venv` to see why"
    run([interpreter, "-m", "venv", "--clear", VENV], advice)
    shutil.rmtree(WORK / "build", ignore_errors=True)
    return True


def find_python():
    """Return a Python 3.10 to 3.13 that can make virtual environments, 3.10 if there is one."""
    wanted = os.environ.get("FOREWARN_PYTHON")
    paths = [wanted] if wanted else candidates()
    broken = []
    for path in paths:
        if version_of(path, NEEDED):
            return path
        if version_of(path):
            broken.append(path)
    if wanted:
        raise SetupError(
            f"FOREWARN_PYTHON={wanted} is not a Python 3.10 to 3.13 "
            "with the modules ssl, venv and ensurepip"
        )
    system = next((p for p in broken if p.startswith("/usr/bin/")), None)
    if system:
        apt_install(f"python3.{version_of(system)}-venv", "Python's venv module")
        if version_of(system, NEEDED):
            return system
    found = f"without ssl, venv or ensurepip: {', '.join(broken)}" if broken else "none at all"
    raise SetupError(
        f"no working Python 3.10 to 3.13 found ({found}): install one, for example with "
        "`apt-get install python3 python3-venv`, or name one in FOREWARN_PYTHON"
    )


def candidates():
    """Interpreters in the usual places, each once, in order of preference."""
    folders = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin", "/usr/local/bin"]
    home = os.path.expanduser("~")
    paths = []
    for minor in MINORS:
        paths += [os.path.join(folder, f"python3.{minor}") for folder in folders]
        paths += sorted(glob.glob(f"{home}/.pyenv/versions/3.{minor}.*/bin/python3"), reverse=True)
        paths += sorted(glob.glob(f"{home}/.local/share/uv/python/cpython-3.{minor}.*/bin/python3"))
    paths += [os.path.join(folder, "python3") for folder in folders] + [sys.executable]
    # A shim of a version manager may exist and fail; version_of runs each and finds out.
    return [p for p in dict.fromkeys(paths) if os.access(p, os.X_OK)]


def version_of(path, imports="import sys"):
    """Minor version of a Python 3.10 to 3.13 that runs and can import these, else None."""
    code = imports + "; import sys; print(*sys.version_info[:2], sys.implementation.name)"
    try:
        result = subprocess.run(
            [str(path), "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            env=clean_environment(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = result.stdout.split()
    if result.returncode or len(words) != 3 or words[0] != "3" or words[2] != "cpython":
        return None
    return int(words[1]) if int(words[1]) in MINORS else None


def install_python_packages():
    """Install the dependencies, ROS 2 from wheels and our own packages (editable)."""
    retry = "check the network (and disk space), then run `make setup` again"
    say("installing Python packages and ROS 2 from wheels")
    run([*PIP, *locked("bootstrap")], retry)
    need_compiler()
    install(locked("setup"), retry)
    own = [word for package in PYTHON_PACKAGES for word in ("-e", ROOT / package)]
    run([*PIP, "--no-deps", "--no-build-isolation", *own], retry)
    site_packages = Path(ask("sysconfig.get_path('purelib')"))
    hook = "_forewarn_ros_environment"
    shutil.copy(ROOT / "scripts" / "ros_environment.py", site_packages / f"{hook}.py")
    (site_packages / "forewarn_ros_environment.pth").write_text(f"import {hook}\n")
    repair_wheels()
    for package in PYTHON_PACKAGES:
        announce(package)


def locked(name):
    """Arguments for what a lock names, and nothing whose hash is another."""
    lock = ROOT / "requirements" / "lock" / (name + ".txt")
    # What is built from source is built with what the lock `bootstrap` has installed.
    return ["--no-build-isolation", "--require-hashes", "-r", lock]


def install(arguments, advice):
    """Install with uv; with pip where uv fails, as with an index that only pip is told of."""
    try:
        run([*UV, *arguments], "pip tries")
    except SetupError:
        run([*PIP, *arguments], advice)


def repair_wheels():
    """Replace the include paths of the machine that built the wheels by those of this one."""
    include, numpy_include = ask("sysconfig.get_path('include')"), ask("numpy.get_include()")
    for path in VENV.glob("share/*/cmake/*rosidl_generator_py*.cmake"):
        text = path.read_text()
        mended = re.sub(r'/opt/python/[^/;"]+/lib/[^;"]+/numpy/_?core/include', numpy_include, text)
        mended = re.sub(r'/opt/python/[^/;"]+/include/python3\.\d+', include, mended)
        if mended != text:
            path.write_text(mended)


def announce(package):
    """Enter an editable package into the ament index, as an installation with colcon would.

    pip leaves data files out of editable installations, and `ros2 run` and `ros2 launch` look for
    executables in lib/<package>.
    """
    replace_link(
        VENV / "share/ament_index/resource_index/packages" / package,
        ROOT / package / "resource" / package,
    )
    replace_link(VENV / "share" / package / "package.xml", ROOT / package / "package.xml")
    scripts = ask(
        f"' '.join(e.name for e in importlib.metadata.distribution({named(package)!r})"
        ".entry_points if e.group == 'console_scripts')"
    )
    for script in scripts.split():
        replace_link(VENV / "lib" / package / script, VENV / "bin" / script)


def named(package):
    """Return what an index calls a package, which may not be how it is imported."""
    parser = configparser.ConfigParser()
    parser.read(str(ROOT / package / "setup.cfg"))
    return parser["metadata"]["name"]


def replace_link(link, target):
    """Make a symbolic link, whatever was in its place."""
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_symlink() or link.exists():
        link.unlink()
    link.symlink_to(target)


def build_ros_packages():
    """Build messages and launch package with colcon, into the prefix of ROS 2 itself: `.venv`."""
    say("building forewarn_msgs and forewarn_bringup")
    environment = clean_environment()
    environment["AMENT_PREFIX_PATH"] = environment["CMAKE_PREFIX_PATH"] = str(VENV)
    environment["PATH"] = os.pathsep.join(
        [str(VENV / "bin"), environment.get("PATH", "/usr/bin:/bin")]
    )
    command = [
        VENV / "bin" / "colcon", "--log-base", WORK / "log",
        "build", "--base-paths", ROOT / "ros2_ws" / "src",
        "--merge-install", "--install-base", VENV, "--build-base", WORK / "build",
        "--event-handlers", "console_direct+",
        "--cmake-args", f"-DPython3_EXECUTABLE={PYTHON}", "-DBUILD_TESTING=OFF",
        "-DFOREWARN_FOR_PYTHON=ON",
    ]  # fmt: skip
    for folder in ("launch", "config"):
        # What is no longer in the repository must not stay behind in the installation.
        shutil.rmtree(VENV / "share" / "forewarn_bringup" / folder, ignore_errors=True)
    advice = "run `make clean setup`; if that fails too, report it with the log"
    with ThreadPoolExecutor() as beside:  # compilers alone leave a core idle half of the time
        rest = beside.submit(finish_python_packages)
        run(command, advice, environment)
        rest.result()
    ask(
        "forewarn_msgs.msg.RiskArray.__import_type_support__()",
        "forewarn_msgs.msg, rclpy, monitor_node, forewarn",
    )


def finish_python_packages():
    """Install what may be absent, and compile all that is there: else each start might do it."""
    for name in ("oracles", "cyber"):
        try:
            install(locked(name), "")
        except SetupError:
            say(f"requirements/{name}.txt cannot be installed here: what needs it is skipped")
    if version_of(PYTHON) != 10:
        say("this is no Python 3.10, the only one with a wheel of Cyber RT: live tests are skipped")
    folders = [ask("sysconfig.get_path('purelib')"), *(ROOT / p / "src" for p in PYTHON_PACKAGES)]
    # Tests of other packages are a quarter of all, and nobody imports them.
    command = [PYTHON, "-m", "compileall", "-qq", "-x", "site-packages/.+/tests/", *folders]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    subprocess.call([str(word) for word in command], env=clean_environment(), **streams)


def need_compiler():
    """See to a C++ compiler, make, Python's headers and cmake."""
    missing = []
    if not (shutil.which("g++") or shutil.which("c++")):
        missing.append("g++")
    if not shutil.which("make"):
        missing.append("make")
    if not Path(ask("sysconfig.get_path('include')", "sysconfig"), "Python.h").exists():
        missing.append(f"python3.{version_of(PYTHON)}-dev")
    if missing:
        apt_install(" ".join(missing), "what builds messages and decoders")
    if not recent_cmake():
        say("installing cmake from its wheel")
        advice = "install cmake 3.22 or newer, or check the network"
        install(locked("cmake"), advice)


def recent_cmake():
    """Tell whether cmake 3.22 or newer is there."""
    for path in (VENV / "bin" / "cmake", shutil.which("cmake")):
        try:
            output = subprocess.check_output(
                [str(path), "--version"], env=clean_environment(), text=True
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        found = re.search(r"(\d+)\.(\d+)", output)
        if found and (int(found.group(1)), int(found.group(2))) >= (3, 22):
            return True
    return False


def apt_install(packages, purpose):
    """Install Debian packages where that is possible without asking, else say how."""
    advice = (
        f"{purpose} is missing: run `sudo apt-get install {packages}` and then `make setup` again"
    )
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise SetupError(advice)
    say(f"apt-get install {packages}")
    environment = dict(clean_environment(), DEBIAN_FRONTEND="noninteractive")
    run(["apt-get", "update", "-q"], advice, environment)
    install = ["apt-get", "install", "-qy", "--no-install-recommends", *packages.split()]
    run(install, advice, environment)


def ask(expression, modules="importlib.metadata, numpy, sysconfig"):
    """Value of an expression in the environment's interpreter, as text."""
    code = f"import {modules}; print({expression})"
    result = subprocess.run(
        [str(PYTHON), "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=clean_environment(),
    )
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no output"])[-1]
        raise SetupError(f"{modules} in .venv fails ({last}): run `make clean setup`")
    return result.stdout.strip()


def run(command, advice, environment=None):
    """Run a command with its output in the log; its failure is one line that says what to do."""
    command = [str(word) for word in command]
    with LOG.open("a") as log:
        log.write("$ {}\n".format(" ".join(command)))
        log.flush()
        code = subprocess.call(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            env=environment or clean_environment(), cwd=str(ROOT),
        )  # fmt: skip
    if code:
        lines = LOG.read_text(errors="replace").splitlines()
        errors = [line.strip() for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)]
        reason = f" ({errors[-1][:160]})" if errors else ""
        short = " ".join(command[:4]).replace(f"{ROOT}/", "")
        raise SetupError(
            f"`{short}` failed{reason}: {advice} (full output: {LOG.relative_to(ROOT)})"
        )


def clean_environment():
    """Environment variables without those that point into other installations."""
    return {name: value for name, value in os.environ.items() if name not in FOREIGN}


def say(text):
    """Tell what is going on."""
    print(f"setup: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
