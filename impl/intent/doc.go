// Package intent keeps the DELs that the daemon has not heard of: the plugin writes one when nobody answers on the
// daemon's socket, and then tells the runtime that its DEL has succeeded (rule F: DEL always ends). The daemon watches
// the folder, does each as a DEL, and removes the file once its release is durable.
//
// One attachment is one file, <hash of the attachment>.json, however often its DEL is repeated. A file shows up whole and
// durable or not at all: it is written under a name that begins with a dot, synced, renamed, and the folder is synced.
// The folder is on a tmpfs, where the pods' other records are: what it speaks of dies with a reboot.
package intent
