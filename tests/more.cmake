# Cases that are not one C program of tests/.
add_subdirectory(fuzz)
add_subdirectory(cli)
