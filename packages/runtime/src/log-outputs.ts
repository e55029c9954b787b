import { closeSync, openSync, writeSync } from 'node:fs'

export interface LogOutputs {
  readonly write: (text: string) => void
  close(): void
}

export interface StandardStreams {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

/**
 * Opens a comma-separated list of `stdout`, `stderr` and file paths. Files are appended to.
 * @throws Error naming the path that cannot be opened.
 */
export function openLogOutputs(list: string, streams: StandardStreams): LogOutputs {
  const files: number[] = []
  const close = () => {
    for (const file of files.splice(0)) closeSync(file)
  }
  const writers = list.split(',').map((path): ((text: string) => void) => {
    if (path === 'stdout') return streams.out
    if (path === 'stderr') return streams.err
    try {
      const file = openSync(path.startsWith('file://') ? new URL(path) : path, 'a')
      files.push(file)
      return (text) => {
        if (files.includes(file)) writeSync(file, text)
      }
    } catch (cause) {
      close()
      const why = path === '' ? 'a path is empty' : (cause as Error).message
      throw new Error(`${why}; use stdout, stderr or file paths, separated by commas`, { cause })
    }
  })
  return {
    write: (text) => {
      for (const write of writers) write(text)
    },
    close,
  }
}
