# What Debian wants of files in a package and an installation by hand does not: manual pages are
# compressed, plug-ins stripped. CPack runs this on each of its folders before it packs them.
file(GLOB_RECURSE pages ${CPACK_TEMPORARY_DIRECTORY}/*.1)
list(FILTER pages INCLUDE REGEX "/man1/")
foreach(page IN LISTS pages)
  execute_process(COMMAND gzip -9nf ${page} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(GLOB_RECURSE plugins ${CPACK_TEMPORARY_DIRECTORY}/libgradcmp_*.so)
foreach(plugin IN LISTS plugins)
  execute_process(COMMAND strip --strip-unneeded ${plugin} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
