package deploy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// The settings that name a file or folder which has to be in a volume: what is written elsewhere ends with the container.
var (
	daemonPaths = []string{"AWS_VPC_K8S_CNI_BACKING_STORE", "AWS_VPC_K8S_CNI_LOG_FILE", "ENILAB_LIB_DIR", "ENILAB_RIVAL", "ENILAB_RUNTIME_SOCKET",
		"ENILAB_RUN_DIR", "ENILAB_SOCKET", "HOST_CNI_CONFDIR_PATH"}
	initPaths = []string{"HOST_CNI_BIN_PATH"}
)

// covered is an error when a container reads or writes where no volume is. All of them are said at once.
func (o *Options) covered() error {
	bare := slices.Concat(o.uncovered(daemonPaths, o.daemonMounts()), o.uncovered(initPaths, o.initMounts()))
	if len(bare) > 0 {
		return fmt.Errorf("deploy: no volume is mounted where these are: %s; change them, or add to ExtraVolumes", strings.Join(bare, ", "))
	}
	return nil
}

func (o *Options) uncovered(names []string, mounts []mount) (out []string) {
	s, _ := o.settings()
	for _, v := range s.Values {
		file := strings.TrimPrefix(v.Value, "unix://")
		if slices.Contains(names, v.Name) && path.IsAbs(file) && !within(path.Clean(file), mounts) {
			out = append(out, v.Name+"="+v.Value)
		}
	}
	return out
}

func within(file string, mounts []mount) bool {
	return slices.ContainsFunc(mounts, func(m mount) bool { return file == m.at || strings.HasPrefix(file, m.at+"/") })
}
