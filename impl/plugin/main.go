package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/enilab/enilab/impl/ipc"
)

// maxConf bounds what is read from standard input, in bytes: a GC lists every attachment of a node.
const maxConf = 4 << 20

// stdinPatience is how long standard input may stay open and silent. A runtime writes at once.
const stdinPatience = 10 * time.Second

// Main runs the verb that CNI_COMMAND names, as the CNI specification 1.1.0 (section 2) says, and returns the exit code.
func Main() int {
	time.Local = time.UTC // in the log; to find out the machine's takes two files, at every run
	var conf []byte
	if c := os.Getenv("CNI_COMMAND"); c != "" && c != "VERSION" {
		var err *types.Error
		if conf, err = readConf(patient(os.Stdin)); err != nil {
			return fail(os.Stdout, nil, err)
		}
	}
	return run(conf, os.Stdout)
}

// readConf reads the network configuration, within bounds of size and time.
func readConf(r io.Reader) ([]byte, *types.Error) {
	conf, err := io.ReadAll(io.LimitReader(r, maxConf+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, types.NewError(types.ErrIOFailure, fmt.Sprintf("expected a network configuration on standard input, which stayed open and silent for %v", stdinPatience), "")
	case err != nil:
		return nil, types.NewError(types.ErrIOFailure, "read the network configuration from standard input: "+err.Error(), "")
	case len(conf) > maxConf:
		return nil, types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf("expected a network configuration of at most %d bytes on standard input, found more", maxConf), "")
	}
	return conf, nil
}

// run is Main with what was read. The library takes its input from the process: environment and standard input.
func run(conf []byte, out io.Writer) int {
	defer feed(conf)()
	forgive()
	p := &program{out: out}
	if err := skel.PluginMainFuncsWithError(skel.CNIFuncs{
		Add:    p.verb(ipc.Add, (*verb).add),
		Del:    p.del,
		Check:  p.verb(ipc.Check, (*verb).check),
		GC:     p.verb(ipc.GC, (*verb).gc),
		Status: p.verb(ipc.Status, (*verb).status),
	}, version.All, ""); err != nil {
		return fail(out, conf, err)
	}
	return 0
}

// program is one run of the plugin.
type program struct{ out io.Writer }

// feed makes what was read the process's standard input again, for the library.
func feed(conf []byte) (restore func()) {
	if conf == nil { // the library reads nothing
		return func() {}
	}
	was := os.Stdin
	r, err := fileOf(conf)
	if err != nil {
		r, err = pipeOf(conf)
	}
	if err != nil {
		return func() {} // the library then finds the end of the input, and says so
	}
	os.Stdin = r
	return func() {
		os.Stdin = was
		r.Close()
	}
}

// pipeOf is what to read data from where there are no files in memory.
func pipeOf(data []byte) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		w.Write(data)
		w.Close()
	}()
	return r, nil
}

// forgive lets DEL, GC and STATUS run without CNI_PATH, as the specification does; the library wants it of every verb. No
// other plugin is run by this one.
func forgive() {
	switch os.Getenv("CNI_COMMAND") {
	case "DEL", "GC", "STATUS":
		if os.Getenv("CNI_PATH") == "" {
			os.Setenv("CNI_PATH", "/opt/cni/bin")
		}
	}
}

// fail prints an error as the specification wants it. The library's own type has no cniVersion.
func fail(out io.Writer, conf []byte, err *types.Error) int {
	raw, _ := json.MarshalIndent(struct {
		CNIVersion string `json:"cniVersion"`
		Code       uint   `json:"code"`
		Msg        string `json:"msg"`
		Details    string `json:"details,omitempty"`
	}{spoken(conf), err.Code, careful(err.Msg), careful(err.Details)}, "", "    ")
	if _, err := out.Write(append(raw, '\n')); err != nil {
		fmt.Fprintln(os.Stderr, "aws-cni: print the error:", err)
	}
	return 1
}

// spoken is the CNI version in which the caller is answered: its own, where that is known.
func spoken(conf []byte) string {
	var c struct {
		CNIVersion string `json:"cniVersion"`
	}
	if json.Unmarshal(conf, &c) == nil {
		for _, v := range version.All.SupportedVersions() {
			if v == c.CNIVersion {
				return v
			}
		}
	}
	return version.Current()
}

// careful takes out the words that make go-cni believe an error to be a success.
var careful = strings.NewReplacer(
	"no such file or directory", "it does not exist", "no such file", "it does not exist", "No such file", "it does not exist",
	"not found", "absent", "Not found", "absent", "Not Found", "absent",
).Replace

// errorf is an error with a CNI code.
func errorf(code uint, format string, args ...any) error {
	return types.NewError(code, fmt.Sprintf(format, args...), "")
}

// codeOf is the CNI code of an error; 0 of nil.
func codeOf(err error) uint {
	var e *types.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Code
	}
	return types.ErrInternal
}
