package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// connections is how many TCP connections a process has to a port of this machine.
func connections(pid int, addr string) int {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	remote, sockets := fmt.Sprintf(":%04X", number), map[string]bool{}
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil {
			if inode, found := strings.CutPrefix(target, "socket:["); found {
				sockets[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	n := 0
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			const remoteAddress, state, inode, established = 2, 3, 9, "01"
			if f := strings.Fields(line); len(f) > inode && f[state] == established && strings.HasSuffix(f[remoteAddress], remote) && sockets[f[inode]] {
				n++
			}
		}
	}
	return n
}
