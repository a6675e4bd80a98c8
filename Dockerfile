# The monitor in a ROS 2 container. ROS_DISTRO is humble, jazzy, kilted or lyrical.
#   docker build --build-arg ROS_DISTRO=jazzy -t forewarn .
#   docker run --rm --net=host -v "$PWD:/data" forewarn \
#       ros2 launch forewarn_bringup monitor.launch.py config:=/data/monitor.yaml model:=/data/model.json
# compose.yaml starts it beside a player of recordings and a bridge to Foxglove.
ARG ROS_DISTRO=jazzy
FROM ros:${ROS_DISTRO}-ros-base AS monitor

SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /opt/forewarn
COPY . src/forewarn

# Versions of Debian packages are those of the base image's distribution; ros.txt keeps to its numpy. Humble's pip
# knows no --break-system-packages, and needs none.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-pip \
    && rosdep update --rosdistro "$ROS_DISTRO" \
    && rosdep install -y --from-paths src --ignore-src --dependency-types exec \
        --dependency-types build --dependency-types buildtool \
    && PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-cache-dir -r src/forewarn/requirements/ros.txt \
    && rm -rf /var/lib/apt/lists/*

RUN source "/opt/ros/$ROS_DISTRO/setup.bash" \
    && colcon build --merge-install --cmake-args -DBUILD_TESTING=OFF \
    && rm -rf build log

# The first user of the base image: the monitor needs no privileges.
USER 1000:1000
WORKDIR /data
ENTRYPOINT ["/bin/bash", "-c", "source /opt/forewarn/install/setup.bash && exec \"$@\"", "--"]
CMD ["ros2", "launch", "forewarn_bringup", "monitor.launch.py", "--show-args"]

# The bridge to Foxglove has to know our messages: it is added to the monitor's image.
FROM monitor AS foxglove
USER 0:0
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends "ros-$ROS_DISTRO-foxglove-bridge" \
    && rm -rf /var/lib/apt/lists/*
USER 1000:1000
CMD ["ros2", "launch", "foxglove_bridge", "foxglove_bridge_launch.xml"]

# What `docker build .` makes.
FROM monitor
