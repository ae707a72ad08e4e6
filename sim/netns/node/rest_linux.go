package node

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// lifeMark is a variable in the environment of a daemon, and so of all that it starts: a process that has left its group and whose parent has
// ended is still known by it.
func lifeMark(life int) string { return "LABORATORY_LIFE=" + strconv.Itoa(life) }

// lookAgain is the pause between two looks for processes that are about to end.
const lookAgain = 5 * time.Millisecond

// endMarked kills every process with a mark, until there is none or deathTimeout is over.
func endMarked(mark string) {
	for end := time.Now().Add(deathTimeout); killMarked(mark) && time.Now().Before(end); {
		time.Sleep(lookAgain)
	}
}

// killMarked says whether there was one.
func killMarked(mark string) bool {
	pids, err := marked(mark)
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return err == nil && len(pids) > 0
}

// marked are the processes with a mark in their environment; this one never is.
func marked(mark string) (pids []int, err error) {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ") // empty of one that has ended
		if err == nil && bytes.Contains(append(append([]byte{0}, env...), 0), []byte("\x00"+mark+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
