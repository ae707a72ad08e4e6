package linux

import (
	"maps"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/netlink"
)

// roster knows all links. The kernel finds a link by its name, never by its alias, and a dump of 110 links costs as
// much as making one. A notification tells as much as a dump would, with one exception: see updateAliases.
type roster struct {
	lock sync.Mutex
	told

	links   map[int]*device
	byName  map[string]int
	byAlias map[string][]*device
	down    map[int]bool
}

// name is the link that has it; index 0 when there is none.
func (o *roster) name(name string) (device, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	err := o.update()
	if d := o.links[o.byName[name]]; d != nil {
		return *d, err
	}
	return device{}, err
}

// alias is the link that has it; index 0 when there is none. A third party may have given two links the same one: the
// older is meant.
func (o *roster) alias(alias string) (found device, err error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	err = o.updateAliases()
	for _, d := range o.byAlias[alias] {
		if alias != "" && (found.index == 0 || d.index < found.index) {
			found = *d
		}
	}
	return found, err
}

// best is the link that better prefers to all others; it is first asked with the zero device.
func (o *roster) best(better func(d, than *device) bool) (found device, err error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	err = o.updateAliases()
	for _, d := range o.links {
		if better(d, &found) {
			found = *d
		}
	}
	return found, err
}

func (o *roster) update() error { return o.told.update(o.hear, o.fill) }

// updateAliases also looks at the links that are down: a new alias of such a one causes no notification
// (netdev_state_change). There are hardly any.
func (o *roster) updateAliases() error {
	if err := o.update(); err != nil {
		return err
	}
	for _, index := range slices.Collect(maps.Keys(o.down)) {
		now, err := byIndex(o.ask, &o.r, index)
		if err != nil {
			return err
		}
		if o.remove(index); now.index != 0 {
			o.put(now)
		}
	}
	return nil
}

func (o *roster) hear(kind uint16, body []byte) {
	var v netlink.Link
	if kind != unix.RTM_NEWLINK && kind != unix.RTM_DELLINK || !v.Parse(body) || body[0] != unix.AF_UNSPEC {
		return
	}
	if o.remove(v.Index); kind == unix.RTM_NEWLINK {
		o.add(&v)
	}
}

func (o *roster) fill() error {
	o.links, o.byName, o.byAlias, o.down = map[int]*device{}, map[string]int{}, map[string][]*device{}, map[int]bool{}
	var v netlink.Link
	return o.ask.Dump(o.r.AskLinks(), func(body []byte) {
		if v.Parse(body) {
			o.add(&v)
		}
	})
}

func (o *roster) add(v *netlink.Link) { o.put(deviceOf(v)) }

func (o *roster) put(d device) {
	o.remove(d.index)
	o.links[d.index] = &d
	o.byName[d.name] = d.index
	o.byAlias[d.alias] = append(o.byAlias[d.alias], &d)
	if !d.up && !d.loopback {
		o.down[d.index] = true
	}
}

func (o *roster) remove(index int) {
	d, known := o.links[index]
	if !known {
		return
	}
	delete(o.links, index)
	delete(o.down, index)
	if o.byName[d.name] == index {
		delete(o.byName, d.name)
	}
	like := o.byAlias[d.alias]
	at := slices.Index(like, d)
	if o.byAlias[d.alias] = slices.Delete(like, at, at+1); len(like) == 1 {
		delete(o.byAlias, d.alias)
	}
}
