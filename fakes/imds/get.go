package imds

import (
	"slices"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
)

const (
	found    = 200
	notFound = 404
	latest   = "latest"
	// plain is what "all instance metadata" is returned as ("Access instance metadata"); binary is user data's.
	plain  = "text/plain"
	binary = "application/octet-stream"
)

// versions are the builds of the tree ("Get the available versions of the instance metadata"). A build has the categories that were
// there when it was released; "latest" compares greater than all of them.
var versions = [...]string{"1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15", "2008-02-01", "2008-09-01", "2009-04-04",
	"2011-01-01", "2011-05-01", "2012-01-12", "2014-02-25", "2014-11-05", "2015-10-20", "2016-04-19", "2016-06-30", "2016-09-02", "2018-03-28",
	"2018-08-17", "2018-09-24", "2019-10-01", "2020-10-27", "2021-01-03", "2021-03-23", "2021-07-15", "2022-09-24", "2024-04-11", latest}

// Version says whether a path's first element is a build of the tree.
func Version(name string) bool {
	return slices.Contains(versions[:], name)
}

// Get answers a read of a path, as "/latest/meta-data/mac".
func Get(v *View, path string) Reply {
	if path == "/" || path == "" {
		return Reply{found, plain, strings.Join(versions[:], "\n")}
	}
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return Reply{Status: notFound}
	}
	rest = strings.TrimSuffix(rest, "/")
	version, rest, more := strings.Cut(rest, "/")
	if !Version(version) {
		return Reply{Status: notFound}
	}
	p, top := place{View: v, version: version}, tree
	n := &top
	for more {
		var name string
		name, rest, more = strings.Cut(rest, "/")
		if n = n.child(&p, name); n == nil {
			return Reply{Status: notFound}
		}
	}
	return n.read(&p)
}

// place is where a walk through the tree is: what the values below depend on.
type place struct {
	*View
	version string
	eni     *ec2.IMDSENI // below a MAC
	key     string       // of a tag
}

// node is one name of the tree: a folder of children, a folder of as many as there are, or a leaf.
type node struct {
	name  string
	since string // the build that it came with; "": the folder's
	// value is a leaf's text; false: there is none, now or on this instance.
	value func(*place) (string, bool)
	// always: the leaf is listed also when it has no value yet.
	always   bool
	children []node
	// many are the names that a listing of the folder has, enter goes to one of them, which is each.
	many  func(*place) []string
	enter func(p *place, name string) bool
	each  *node
	// bare: a listing names the folder without a slash.
	bare   bool
	binary bool
}

// child is the node below a folder with that name, nil if there is none.
func (n *node) child(p *place, name string) *node {
	if n.each != nil && n.enter(p, name) {
		return n.each
	}
	for i := range n.children {
		if c := &n.children[i]; c.name == name && c.since <= p.version {
			return c
		}
	}
	return nil
}

// read answers for a node, with and without a slash behind it.
func (n *node) read(p *place) Reply {
	r, ok := Reply{found, plain, ""}, false
	if n.value == nil {
		r.Text = n.listing(p)
		ok = r.Text != ""
	} else {
		r.Text, ok = n.value(p)
	}
	if !ok {
		return Reply{Status: notFound}
	}
	if n.binary {
		r.Type = binary
	}
	return r
}

// listing names what is in a folder.
func (n *node) listing(p *place) string {
	if n.each != nil {
		return joined(n.many(p), n.each.value == nil && !n.each.bare)
	}
	var names []string
	for i := range n.children {
		c := &n.children[i]
		switch {
		case !c.visible(p):
		case c.value == nil && !c.bare:
			names = append(names, c.name+"/")
		default:
			names = append(names, c.name)
		}
	}
	return strings.Join(names, "\n")
}

// visible says whether a listing names the node: a folder with nothing in it is not there.
func (n *node) visible(p *place) bool {
	if n.since > p.version {
		return false
	}
	if n.always {
		return true
	}
	if n.value != nil {
		_, ok := n.value(p)
		return ok
	}
	if n.each != nil {
		return len(n.many(p)) > 0
	}
	for i := range n.children {
		if n.children[i].visible(p) {
			return true
		}
	}
	return false
}

func joined(names []string, slash bool) string {
	if !slash || len(names) == 0 {
		return strings.Join(names, "\n")
	}
	return strings.Join(names, "/\n") + "/"
}
