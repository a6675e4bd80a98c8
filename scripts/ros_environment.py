"""Makes a virtual environment a complete ROS 2 prefix, so that nobody has to source anything.

`bootstrap.py` copies this file into the environment's site-packages, where a .pth file imports it
whenever the interpreter starts. It has to come before the start hook of the ROS 2 wheels: site.py
reads .pth files in alphabetical order.
"""

import os
import sys


def _prepend(variable, path):
    paths = [p for p in os.environ.get(variable, "").split(os.pathsep) if p]
    if path not in paths:
        os.environ[variable] = os.pathsep.join([path, *paths])


# Where the ament index, and with it `ros2` and launch, look for packages.
_prepend("AMENT_PREFIX_PATH", sys.prefix)

# The wheels' hook restarts the interpreter once with LD_LIBRARY_PATH, and marks that in the
# environment. A child of another environment's interpreter inherits the mark, but not the path to
# our libraries: it must do it again.
if os.path.join(sys.prefix, "lib") not in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep):
    os.environ.pop("_ROS_WHEELS_BOOTSTRAP_COMPLETE", None)
