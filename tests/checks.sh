# What scripts of checks have in common; to be sourced. Each check has a line; `verdict` is the last command.
passed=0
failed=0

check() { # NAME COMMAND...: passes when the command succeeds
    local title=$1
    shift
    if "$@"; then
        echo "ok    $title"
        passed=$((passed + 1))
    else
        echo "FAIL  $title"
        failed=$((failed + 1))
    fi
}

refuses() { ! "$@"; }

verdict() { # whether all passed, in words and as a status
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
