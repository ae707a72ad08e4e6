#!/bin/sh
# Stands before the real plugin in the runtime's list of folders, under its name, and runs it. While the file "fails" beside it says so, which
# has how many DELs and after how many nanoseconds each, a DEL fails before it reaches the plugin. Taking the file away ends what waits.
# The plugin is told to speak the version of the local protocol that is in the file "protocol", as a plugin of that
# version would.
file=${0%/*}/fails
if [ "$CNI_COMMAND" = DEL ] && exec 9<"${0%/*}" && flock 9 && [ -e "$file" ] && read -r times after <"$file" && [ "$times" -gt 0 ]; then
	echo "$((times - 1)) $after" >"$file.new" && mv "$file.new" "$file"
	exec 9<&-
	end=$(($(date +%s%N) + after))
	while [ -e "$file" ] && [ "$(date +%s%N)" -lt "$end" ]; do sleep 0.05; done
	# 11 is "try again later" (CNI specification, section 5).
	echo '{"cniVersion":"1.0.0","code":11,"msg":"a plugin before this one fails, as the scenario says"}'
	exit 1
fi
exec 9<&-
read -r protocol <"${0%/*}/protocol"
conf=$(cat)
echo "$protocol" >"${0%/*}/spoken.$$" && mv "${0%/*}/spoken.$$" "${0%/*}/spoken"
exec PLUGIN <<EOF
${conf%\}*},"localProtocol":$protocol}
EOF
