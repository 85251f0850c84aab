import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Value of the `st` column of `/proc/net/tcp` for a listening socket. */
const listeningState = '0A'

/**
 * Returns the process that listens on a port, such as `node (pid 4711)`; undefined if unknown.
 *
 * @see proc(5): /proc/net/tcp, /proc/[pid]/fd
 */
export function findPortHolder(port: number): string | undefined {
  try {
    const inodes = new Set(['/proc/net/tcp', '/proc/net/tcp6'].flatMap(path => listeningInodes(path, port)))
    const pid =
      inodes.size > 0
        ? readdirSync('/proc').find(name => /^\d+$/.test(name) && hasSocket(name, inodes))
        : undefined
    return pid && `${readFileSync(`/proc/${pid}/comm`, 'utf8').trim()} (pid ${pid})`
  } catch {
    return undefined
  }
}

/** Returns the inodes of sockets that listen on a port, from a socket table of the kernel. */
function listeningInodes(path: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const rows = readFileSync(path, 'utf8').split('\n').slice(1)
  const fields = rows.map(row => row.trim().split(/\s+/))
  return fields.flatMap(row =>
    row[1]?.endsWith(suffix) && row[3] === listeningState && row[9] ? [row[9]] : [],
  )
}

function hasSocket(pid: string, inodes: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some(fd => {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1]
      return inode !== undefined && inodes.has(inode)
    })
  } catch {
    return false
  }
}
