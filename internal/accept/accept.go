// Package accept is the loop of a server in a test.
//
//	go accept.Each(l.Accept, func(c net.Conn) { ... })
package accept

// Each serves what accept returns, one connection after the other, until that returns an error: the listener is closed.
func Each[C any](accept func() (C, error), serve func(C)) {
	for {
		c, err := accept()
		if err != nil {
			return
		}
		serve(c)
	}
}
