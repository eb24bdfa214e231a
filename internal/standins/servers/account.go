package servers

import (
	"errors"
	"os"
	"os/user"
	"strconv"
)

// account is the unprivileged user that servers which refuse root run as.
type account struct {
	name     string
	uid, gid uint32
}

// unprivileged returns the user for servers that refuse root: postgres, or else the system's nobody. It
// returns nil if this process is not root.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("this process is root, PostgreSQL and PgBouncer refuse to run as root, and there " +
		"is neither a user postgres nor a user nobody to run them as: run this as an ordinary user")
}

// own hands a file or folder to the account. A nil account leaves it as it is.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// install puts copies of a certificate and its key into dir, as files of the account's: servers refuse a key
// that others may read.
func (a *account) install(dir *folder, c Certificate) (cert, key string, err error) {
	cert, key = dir.join("server.crt"), dir.join("server.key")
	for from, to := range map[string]string{c.CertFile: cert, c.KeyFile: key} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = a.writeFile(to, string(text), os.O_CREATE|os.O_TRUNC)
		}
		if err != nil {
			return "", "", err
		}
	}
	return cert, key, nil
}

// writeFile writes text to a file of the account's, made or appended to as the flag (of os.OpenFile) says.
func (a *account) writeFile(path, text string, flag int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|flag, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close(), a.own(path))
}
