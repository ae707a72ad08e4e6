package calls

import (
	"encoding/json"
	"os"
)

// fail prints an error as a plugin does (CNI 1.1.0, section 5) and gives the exit code. The text should not contain "not
// found" or "no such file or directory", which go-cni takes for success of a DEL.
func fail(stdin []byte, code uint, text string) (exit int) {
	var conf struct{ CNIVersion string }
	if json.Unmarshal(stdin, &conf) != nil || conf.CNIVersion == "" {
		conf.CNIVersion = "1.0.0"
	}
	raw, err := json.Marshal(struct {
		CNIVersion string `json:"cniVersion"`
		Code       uint   `json:"code"`
		Msg        string `json:"msg"`
	}{conf.CNIVersion, code, text})
	if err == nil {
		_, _ = os.Stdout.Write(append(raw, '\n'))
	}
	return 1
}
