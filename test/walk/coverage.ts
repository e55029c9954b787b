/** Which functions V8 ran, by file. Paths are relative to the root of the repository. */
import { readFileSync } from 'node:fs'
import { type Debugger, Session } from 'node:inspector'
import { relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = resolve(import.meta.dirname, '../..')

/** A function that ran: its offset in the file, and its number of calls. */
interface RanFunction {
  readonly start: number
  readonly count: number
}

/** Functions that ran, by file, without module-level code, which runs on load. */
export type Ran = ReadonlyMap<string, readonly RanFunction[]>

/** Breakpoints are slow: functions called more often get one only if their file has no others. */
const mostCalls = 1000

export class Coverage {
  readonly #session = new Session()
  /** Files of this repository, and of libraries, that were loaded since the start. */
  readonly loaded = new Set<string>()

  /** Must be created before the measured code is loaded. */
  constructor() {
    this.#session.connect()
    this.#session.post('Profiler.enable')
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  }

  /** What ran since the last call. */
  take(): Ran {
    const ran = new Map<string, RanFunction[]>()
    this.#session.post('Profiler.takePreciseCoverage', (error, taken) => {
      if (error !== null) throw error
      for (const { url, functions } of taken.result) {
        if (!url.startsWith('file://')) continue
        const file = relative(root, fileURLToPath(url))
        this.loaded.add(file)
        const called = functions.flatMap(({ functionName, ranges: [range] }) => {
          if (range === undefined || range.count === 0) return []
          const { startOffset: start, count } = range
          return functionName === '' && start === 0 ? [] : [{ start, count }]
        })
        if (called.length > 0) ran.set(file, called)
      }
    })
    return ran
  }

  /**
   * Records files in the order in which one of these functions is first entered, from now on. Coverage has no
   * times, so each function gets a breakpoint whose condition records the entry and is never true.
   */
  entries(ran: Ran): ReadonlySet<string> {
    const entered = new Set<string>()
    Object.assign(globalThis, { walkEntered: entered })
    this.#session.post('Debugger.enable')
    const waiting = new Map([...ran].map(([file, called]) => [file, this.#breakpoints(file, called)]))
    const clear = (): void => {
      for (const file of entered) {
        for (const breakpointId of waiting.get(file) ?? [])
          this.#session.post('Debugger.removeBreakpoint', { breakpointId })
        waiting.delete(file)
      }
      setImmediate(clear)
    }
    clear()
    return entered
  }

  #breakpoints(file: string, called: readonly RanFunction[]): readonly string[] {
    const rare = called.filter(({ count }) => count <= mostCalls)
    const path = resolve(root, file)
    const text = readFileSync(path, 'utf8')
    const ids: string[] = []
    for (const { start } of rare.length > 0 ? rare : called) {
      const lines = text.slice(0, start).split('\n')
      const place = {
        url: pathToFileURL(path).href,
        lineNumber: lines.length - 1,
        columnNumber: lines.at(-1)?.length ?? 0,
        condition: `void globalThis.walkEntered.add(${JSON.stringify(file)})`,
      }
      const note = (_: Error | null, { breakpointId }: Debugger.SetBreakpointByUrlReturnType) => {
        ids.push(breakpointId)
      }
      this.#session.post('Debugger.setBreakpointByUrl', place, note)
    }
    return ids
  }
}
