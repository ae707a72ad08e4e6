package calls

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// falter fails or stalls when faultsFile in its own folder, a list of Fault, says so; no file is no fault. It is used in two ways:
//
//   - under another plugin's name, in a folder before that plugin's own in the runtime's list: that plugin is slow, or fails, or its answer
//     is not heard;
//   - under a name of its own, as a member of a conflist, before or behind another plugin: without a fault it does nothing and
//     passes on the result so far. DEL runs a list backwards, so the one behind is the one that keeps a DEL from reaching
//     the plugin before it.
func falter(self string) (exit int) {
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		return fail(nil, 5, fmt.Sprintf("faulty: read the network configuration: %v", err)) // 5: I/O failure
	}
	file := filepath.Join(filepath.Dir(self), faultsFile)
	f, err := takeFault(file, filepath.Base(self), os.Getenv("CNI_COMMAND"), PodOf(os.Getenv("CNI_ARGS")))
	if err != nil {
		return fail(stdin, 999, fmt.Sprintf("faulty: %v", err))
	}
	var o outcome
	if f.After {
		o, err = work(self, stdin)
	}
	f.Wait(file)
	if f.Error != "" {
		return fail(stdin, f.Code, f.Error)
	}
	if !f.After {
		o, err = work(self, stdin)
	}
	if err != nil {
		return fail(stdin, 999, fmt.Sprintf("faulty: %v", err))
	}
	_, _ = os.Stdout.Write(o.Stdout) // whoever wanted it has gone
	return o.Exit
}

// work runs the plugin behind this one, or plays a member of a list.
func work(self string, stdin []byte) (outcome, error) {
	if plugin, ok := next(self, os.Getenv("CNI_PATH")); ok {
		return execute(plugin, stdin)
	}
	stdout, err := member(stdin)
	return outcome{Stdout: stdout}, err
}

// member is what a plugin of a list answers that does nothing: the result of the one before it; of the first, an empty one.
func member(stdin []byte) ([]byte, error) {
	var conf struct {
		CNIVersion string          `json:"cniVersion"`
		PrevResult json.RawMessage `json:"prevResult"`
	}
	if err := json.Unmarshal(stdin, &conf); err != nil {
		return nil, fmt.Errorf("network configuration: expected a JSON object: %w", err)
	}
	switch os.Getenv("CNI_COMMAND") {
	case "ADD":
		if len(conf.PrevResult) > 0 {
			return conf.PrevResult, nil
		}
		return fmt.Appendf(nil, `{"cniVersion":%q}`, conf.CNIVersion), nil
	case "VERSION":
		return fmt.Appendf(nil, `{"cniVersion":%q,"supportedVersions":["0.3.1","0.4.0","1.0.0","1.1.0"]}`, conf.CNIVersion), nil
	}
	return nil, nil
}
