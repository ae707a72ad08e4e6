// Command peer is what the suite's pods run: servers that tell who they are and whom they see, and the clients of such servers. The busybox
// of a node image may lack half of its tools, and its servers take two connections at a time.
//
//	peer serve                  serves TCP port 7 (sends back what it gets) and HTTP port 8080, until SIGTERM
//	peer unready | ready        lets /ready of this pod's server fail, or not
//	peer ask ADDRESS:PORT ...   asks each HTTP port who it is, and whom it sees
//	peer echo ADDRESS:PORT ...  sends 200 kB to each echo port, which have to come back
//	peer read ADDRESS:PORT ...  reads what each says
//	peer get URL ...            gets each; the answer is the status
//	peer lookup NAME[@SERVER] ... resolves names by the pod's resolv.conf, or by a server
//	peer pipe ADDRESS:PORT      carries its input there, and what comes back to its output
//
// The clients but pipe do everything at once and print a line for each argument: the argument, a space, and the answer, or an exclamation
// mark and the error.
package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// patience bounds one question.
const patience = 30 * time.Second

// questions are the clients: an argument, and its answer.
var questions = map[string]func(arg string) (string, error){"ask": ask, "echo": echo, "read": read, "get": get, "lookup": lookup}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("what? see go doc ./e2e/peer")
	}
	if q := questions[args[0]]; q != nil {
		fmt.Print(answers(q, args[1:]))
		return nil
	}
	switch {
	case args[0] == "serve":
		return serve()
	case args[0] == "unready":
		return os.WriteFile(unreadyFile, nil, 0o644)
	case args[0] == "ready":
		return os.Remove(unreadyFile)
	case args[0] == "pipe" && len(args) == 2:
		return pipe(args[1], os.Stdin, os.Stdout)
	}
	return fmt.Errorf("what is %q? see go doc ./e2e/peer", args)
}

// answers asks everything at once; the lines are in the order of the arguments.
func answers(q func(string) (string, error), args []string) string {
	lines := make([]string, len(args))
	var all sync.WaitGroup
	for i, arg := range args {
		all.Go(func() {
			answer, err := q(arg)
			if err != nil {
				answer = "!" + err.Error()
			}
			lines[i] = arg + " " + strings.Join(strings.Fields(answer), " ") + "\n"
		})
	}
	all.Wait()
	return strings.Join(lines, "")
}
