# The monitor in a ROS 2 container.
#   docker build -t forewarn .
#   docker run --rm --net=host -v "$PWD:/data" forewarn \
#       ros2 launch forewarn_bringup monitor.launch.py config:=/data/monitor.yaml model:=/data/model.json
FROM ros:kilted-ros-base

SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /opt/forewarn
COPY . src/forewarn

# Versions of Debian packages are those of the base image's distribution; ros.txt keeps to its numpy 1.x.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-pip \
    && rosdep update --rosdistro "$ROS_DISTRO" \
    && rosdep install -y --from-paths src --ignore-src --dependency-types exec \
        --dependency-types build --dependency-types buildtool \
    && python3 -m pip install --no-cache-dir --break-system-packages -r src/forewarn/requirements/ros.txt \
    && rm -rf /var/lib/apt/lists/*

RUN source "/opt/ros/$ROS_DISTRO/setup.bash" \
    && colcon build --merge-install --cmake-args -DBUILD_TESTING=OFF \
    && rm -rf build log

# "ubuntu" of the base image: the monitor needs no privileges.
USER 1000:1000
WORKDIR /data
ENTRYPOINT ["/bin/bash", "-c", "source /opt/forewarn/install/setup.bash && exec \"$@\"", "--"]
CMD ["ros2", "launch", "forewarn_bringup", "monitor.launch.py", "--show-args"]
