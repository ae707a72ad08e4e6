package daemon

import "time"

// Bounds of queues.
const (
	// maxInbox is how many events wait for the loop; the sender of another one blocks. Nothing that the loop itself waits
	// for does.
	maxInbox = 1024
	// maxBatch is how many of them are stepped before due timers are looked at and Saves start, so that both stay prompt in a flood.
	maxBatch = 128
	// maxPeers is how many callers are served at once: kubelet's limit is 250 pods on a node, with two DELs each and the
	// runtime's STATUS. Each holds up to three files.
	maxPeers = 1024
	// maxSilent is how many connections are kept whose request has not come: a plugin sends it at once, and each is a file.
	maxSilent = 512
	// maxRecord is the largest record that is read: a thousand allocations are half a megabyte.
	maxRecord = 64 << 20
	// maxConflist is the largest conflist that is read: a plugin's configuration is some hundred bytes.
	maxConflist = 1 << 20
	// maxBad is how many unreadable records are kept for people to look at.
	maxBad = 9
	// maxPanics is how many dumps of crashes are kept.
	maxPanics = 4
)

// Bounds of effects, by Config.Clock. When one is reached the effect's context ends, and with that its outcome comes at once.
const (
	runtimeBound = 10 * time.Second // ListPodSandbox of a node takes milliseconds
	podsBound    = 30 * time.Second
	imdsBound    = 30 * time.Second // some ten leaves per ENI, one after the other
	ec2Bound     = time.Minute      // pages of ENIs, one request each
	callBound    = time.Minute      // credentials and one request; HTTP_TIMEOUT ends each of them earlier
)

// Pauses and periods, by Config.Clock.
const (
	defaultTimeout = 30 * time.Second       // of a request whose caller did not say
	intentRetry    = time.Second            // a DEL intent that failed is tried again, and later at twice the distance each time
	conflistRetry  = time.Second            // and so is a conflist that could not be written
	maxRetry       = 32 * time.Second       // … up to this
	intentScan     = time.Minute            // the folder of intents is read although nothing was heard
	watchRetry     = time.Second            // a broken watch is begun again
	hintPause      = 100 * time.Millisecond // at most one hint in this time: a storm of netlink events is one reason to look
	hintShare      = 50                     // … and in so many times what a look takes
	hintPauseMost  = time.Second            // … but one in this time, however long a look takes
	tickPause      = 10 * time.Millisecond  // between ticks that moved nothing: a core that is wrong about Next cannot take the CPU
	reasonsPause   = time.Second            // between log lines about the node's health
	eventPause     = 10 * time.Minute       // between Events about it: they are for people
	eventTries     = 10                     // an Event that the API server does not take is made again
	eventRetry     = time.Minute            // … after this
	policiesFirst  = 2 * time.Minute        // whether the cluster has network policies is asked then: an agent starts meanwhile
	policiesAgain  = time.Hour              // … and then each hour
	retryFirst     = 100 * time.Millisecond // lock, rival and socket: the first pause, doubled up to the next
	retryMost      = 5 * time.Second
	statusGrace    = time.Minute // a restarted daemon of a node that has served is not reported as down for this long (rule J)
)

// Pauses in real time: what they wait for does not follow a laboratory's clock.
const (
	statusBound  = 900 * time.Millisecond // STATUS answers within a second (rule J)
	streamBound  = 2 * time.Second        // a reader of the recording that is slower than that is dropped
	acceptPause  = 50 * time.Millisecond  // after accept(2) failed, as it does without free files
	gatherBound  = time.Second            // for goroutines at the very end
	probeTimeout = time.Second            // a rival that answers does it at once
)

// ringSegment is the size at which a segment of the flight recorder is full. Two of them are kept, so what led to a crash is at
// least the last mebibyte of inputs: hours of a quiet node, minutes of the busiest.
const ringSegment = 1 << 20
