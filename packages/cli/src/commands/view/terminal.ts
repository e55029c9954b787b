/** The terminal of this process. */
import { constants } from 'node:os'
import type { Terminal } from '@tenon/console'

/** Streams and signals of a process. */
type Host = Pick<NodeJS.Process, 'exit' | 'kill' | 'off' | 'on' | 'pid' | 'stdin' | 'stdout'>

/** Leaves the alternate screen whenever the process ends, and while it is stopped (console.md, trap 8). */
export function processTerminal(host: Host): Terminal {
  const { stdin, stdout } = host
  return {
    write: (text) => {
      stdout.write(text)
    },
    size: () => ({ columns: stdout.columns, rows: stdout.rows }),
    open: ({ keys, resized, resumed }, { enter, leave }) => {
      let isIn = false
      const go = (text: string, isRaw: boolean) => {
        if (isIn === isRaw) return
        isIn = isRaw
        if (stdin.isTTY) stdin.setRawMode(isRaw)
        stdout.write(text)
      }
      const out = () => {
        go(leave, false)
      }
      const read = (chunk: Buffer | string) => {
        keys(chunk.toString())
      }
      const hungUp = () => {
        out()
        host.exit(128 + constants.signals.SIGHUP)
      }
      const stopped = () => {
        out()
        host.kill(host.pid, 'SIGSTOP')
      }
      const continued = () => {
        go(enter, true)
        resumed()
      }
      go(enter, true)
      stdin.on('data', read)
      stdin.resume()
      stdout.on('resize', resized)
      host.on('exit', out)
      host.on('SIGHUP', hungUp)
      host.on('SIGTSTP', stopped)
      host.on('SIGCONT', continued)
      return () => {
        out()
        stdin.off('data', read)
        stdin.pause()
        stdout.off('resize', resized)
        host.off('exit', out)
        host.off('SIGHUP', hungUp)
        host.off('SIGTSTP', stopped)
        host.off('SIGCONT', continued)
      }
    },
  }
}
