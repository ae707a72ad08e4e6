package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"google.golang.org/grpc/status"

	"github.com/enilab/enilab/fakes/cri"
)

// dockerVersion is the newest version of the Engine API that is served, Docker 20.10's.
const dockerVersion = "1.41"

// docker is the Docker Engine API over the sandboxes of a Backend.
type docker struct {
	backend Backend
	epoch   int64
}

// Docker serves the part of the Docker Engine API that a node's daemon reads, usually on a unix socket or where DOCKER_HOST points:
//
//	GET /_ping, /version, /info
//	GET /containers/json        with all; the sandboxes, as the containers that dockershim makes of them
//
// with and without a version in front, as /v1.24. Everything else is a 404, and filters are a 400 instead of being ignored.
func Docker(b Backend, options ...Option) http.Handler {
	s := &service{}
	for _, o := range options {
		o(s)
	}
	return &docker{b, s.epoch}
}

// DockerServer is an http.Server for Docker whose clients may be slow or silent.
func DockerServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
}

var versioned = regexp.MustCompile(`^/v1\.([0-9]{1,3})(/.*)$`)

// ServeHTTP answers one request, whatever it is.
func (d *docker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if m := versioned.FindStringSubmatch(path); m != nil {
		if minor, _ := strconv.Atoi(m[1]); minor > 41 {
			sendDocker(w, http.StatusBadRequest, says{"client version 1." + m[1] + " is too new. Maximum supported API version is " + dockerVersion})
			return
		}
		path = m[2]
	}
	w.Header().Set("Api-Version", dockerVersion)
	switch {
	case r.Method != http.MethodGet && (r.Method != http.MethodHead || path != "/_ping"):
		sendDocker(w, http.StatusNotFound, says{"page not found"})
	case path == "/_ping":
		_, _ = w.Write([]byte("OK")) // a caller that has gone does not want it
	case path == "/version", path == "/info":
		d.about(w, r, path)
	case path == "/containers/json":
		d.containers(w, r)
	default:
		sendDocker(w, http.StatusNotFound, says{"page not found"})
	}
}

// says is how the Engine API tells what is wrong.
type says struct {
	Message string `json:"message"`
}

func (d *docker) about(w http.ResponseWriter, r *http.Request, path string) {
	v, err := d.backend.Runtime(r.Context())
	switch {
	case err != nil:
		sendDocker(w, http.StatusInternalServerError, says{status.Convert(err).Message()})
	case path == "/version":
		sendDocker(w, http.StatusOK, map[string]any{"Version": v.Version, "ApiVersion": dockerVersion, "MinAPIVersion": "1.12", "Os": "linux", "Arch": "amd64"})
	default:
		sendDocker(w, http.StatusOK, map[string]any{"ID": "ENILAB", "Name": v.Name, "ServerVersion": v.Version, "OSType": "linux", "Driver": "overlay2"})
	}
}

// container is a row of /containers/json.
type container struct {
	ID         string `json:"Id"`
	Names      []string
	Image      string
	ImageID    string
	Command    string
	Created    int64 // seconds since 1970
	Ports      []struct{}
	Labels     map[string]string
	State      string
	Status     string
	HostConfig struct{ NetworkMode string }
	Mounts     []struct{}
}

// pause is what sandboxes run.
const pause = "k8s.gcr.io/pause:3.2"

func (d *docker) containers(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	for _, name := range [...]string{"filters", "before", "since", "size"} {
		if v := query.Get(name); v != "" && v != "0" && v != "{}" {
			sendDocker(w, http.StatusBadRequest, says{name + " is not modelled: ask without it"})
			return
		}
	}
	rows, err := d.backend.Sandboxes(r.Context())
	if err != nil {
		sendDocker(w, http.StatusInternalServerError, says{status.Convert(err).Message()})
		return
	}
	all, _ := strconv.ParseBool(query.Get("all"))
	out := []container{}
	for i := range rows {
		if rows[i].Ready || all {
			out = append(out, d.container(&rows[i]))
		}
	}
	sendDocker(w, http.StatusOK, out)
}

// container is a sandbox as dockershim makes one.
func (d *docker) container(row *cri.Sandbox) container {
	c := container{ID: row.ID, Names: []string{fmt.Sprintf("/k8s_POD_%s_%s_%s_%d", row.Name, row.Namespace, row.UID, row.Attempt)}, Image: pause, ImageID: pause,
		Command: "/pause", Created: (d.epoch + int64(row.Created)) / int64(time.Second), Ports: []struct{}{}, Mounts: []struct{}{}, Labels: labels(row),
		State: "running", Status: "Up"}
	c.Labels["io.kubernetes.container.name"] = "POD"
	c.Labels["io.kubernetes.docker.type"] = "podsandbox"
	c.HostConfig.NetworkMode = "none"
	if row.HostNetwork {
		c.HostConfig.NetworkMode = "host"
	}
	if !row.Ready {
		c.State, c.Status = "exited", "Exited (0)"
	}
	return c
}

func sendDocker(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // a caller that has gone does not want it
}
