// Package deploy is how the daemon gets onto a cluster's nodes.
package deploy
