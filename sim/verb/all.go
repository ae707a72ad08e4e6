package verb

// All are all verbs, by subject. "enilab verbs" lists them in this order.
func All() []*Verb {
	return []*Verb{
		// of nodes
		socket, restart, upgrade, kill, killAt, hold, unhold, terminate, reboot, gc, failDELs, loseRecords, flushRules,
		flushRoutes, flushNAT, dropARP, dropForward,
		addThirdParty, interruptDumps, restartKubelet, restartRuntime, annotate, label,
		// of pods
		deletePod, forceDelete, hang, unhang, hide, loseGateway, changeMAC, loseAlias, addAddresses, replayDEL,
		// of the API server
		create, scale, roll, holdFlows, putENIConfig, deleteENIConfig, away,
		// of EC2 and metadata
		lose, duplicate, fail, throttle, slow, deny, allow, skew, stale, hangCloud, inUse, remove, drawFaults, detach,
		attach, leak, unassign,
		drainSubnet, fragmentSubnet, tagSubnet, changeGroups, deleteGroup, down,
		silent, lag,
	}
}
