package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enilab/enilab/impl/daemon"
	"github.com/enilab/enilab/impl/deploy"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/sim/kind"
)

// stage is a worker whose aws-node is its own: the DaemonSet of all nodes leaves it out, and one that selects it alone is rolled for it.
type stage struct {
	*bed
	node  *kind.Node
	clock *nodeClock
	rolls int
}

// labDir is a folder of a node that the laboratory and the daemon share.
const labDir = "/run/enilab-e2e"

// roll replaces the stage's aws-node by one with these settings, and waits until the new one serves.
func (s *stage) roll(ctx context.Context, env map[string]string) error {
	if s.clock == nil {
		if err := os.MkdirAll(s.path(labDir), 0o755); err != nil {
			return err
		}
		c, err := openClock(s.path(labDir))
		if err != nil {
			return err
		}
		s.clock = c
	}
	set, err := s.daemonSet(env)
	if err != nil {
		return err
	}
	if err := s.put(ctx, set); err != nil {
		return err
	}
	if err := s.rolled(ctx, set.Name); err != nil {
		return err
	}
	return s.serves(ctx)
}

// close ends the stage's clock: a daemon that has it goes on in real time.
func (s *stage) close() {
	if s.clock != nil {
		s.clock.close()
		s.clock = nil
	}
}

// daemonSet is enilab's own, for one node.
func (s *stage) daemonSet(settings map[string]string) (*appsv1.DaemonSet, error) {
	env := kind.Environment()
	env["CLUSTER_NAME"] = s.Name()
	maps.Copy(env, settings)
	o := deploy.Options{Image: imageOptions(false).Reference(), PullPolicy: "Never", Env: env}
	o.Command = []string{"/ipamd", "--clock", "unix:" + filepath.Join(labDir, clockFile)}
	o.ExtraVolumes = []string{labDir}
	objects, err := deploy.Objects(o)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if set, ok := object.(*appsv1.DaemonSet); ok {
			s.rolls++
			set.Name += "-on-" + s.node.Name
			set.Labels[stageLabel] = s.node.Name
			set.Spec.Selector.MatchLabels[stageLabel] = s.node.Name
			set.Spec.Template.Labels[stageLabel] = s.node.Name
			set.Spec.Template.Annotations = map[string]string{"enilab.io/roll": fmt.Sprint(s.rolls)}
			set.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: s.node.Name}
			return set, nil
		}
	}
	return nil, errors.New("the manifests have no DaemonSet")
}

// put makes a DaemonSet what it shall be.
func (s *stage) put(ctx context.Context, set *appsv1.DaemonSet) error {
	sets := s.Client().AppsV1().DaemonSets(system)
	have, err := sets.Get(ctx, set.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = sets.Create(ctx, set, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	have.Spec.Template = set.Spec.Template
	have.ResourceVersion = "" // its controller writes its status meanwhile; nobody else writes the template
	_, err = sets.Update(ctx, have, metav1.UpdateOptions{})
	return err
}

func (s *stage) rolled(ctx context.Context, name string) error {
	return awaited(ctx, rollLimit, name+" to be rolled out", func(ctx context.Context) (string, error) {
		d, err := s.Client().AppsV1().DaemonSets(system).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		u := &d.Status
		if u.ObservedGeneration == d.Generation && u.DesiredNumberScheduled == 1 && u.UpdatedNumberScheduled == 1 && u.NumberAvailable == 1 {
			return "", nil
		}
		return fmt.Sprintf("%d of %d are updated and %d available", u.UpdatedNumberScheduled, u.DesiredNumberScheduled, u.NumberAvailable), nil
	})
}

// serves waits until the daemon answers.
func (s *stage) serves(ctx context.Context) error {
	return awaited(ctx, rollLimit, "the daemon on "+s.node.Name+" to serve", func(context.Context) (string, error) {
		v, err := s.view()
		if err == nil && !v.View.Serving {
			return "it recovers", nil
		}
		return "", err
	})
}

// path is a path of the node as this process sees it. /var/run is a symbolic link, which would lead into the host.
func (s *stage) path(inside string) string { return filepath.Join(s.node.Root(), inside) }

// viewTimeout bounds the daemon's answer.
const viewTimeout = 5 * time.Second

// view is the node as its daemon sees it.
func (s *stage) view() (v daemon.Inspection, err error) {
	c, err := ipc.Dial(s.path("/run/aws-node/ipamd.sock"), viewTimeout)
	if err != nil {
		return v, err
	}
	defer c.Close()
	r, err := c.Call(&ipc.Request{Verb: ipc.View}, viewTimeout)
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(r.Body, &v)
}
