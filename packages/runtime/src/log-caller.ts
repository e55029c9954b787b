/** Matches folder, file and line of a stack frame, without the query of its URL. */
const place = /([^/\\]+[/\\][^/\\?:]+)(?:\?[^:]*)?:(\d+):\d+\)?$/

/**
 * Returns `folder/file:line` of a caller. It captures a stack trace, which takes some microseconds.
 * @param above number of frames above the function that calls this one.
 */
export function callerOf(above: number): string {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = above + 2
  const { stack = '' } = new Error('where')
  Error.stackTraceLimit = limit
  const [, file, line] = place.exec(stack.split('\n')[above + 2] ?? '') ?? []
  return file === undefined ? 'unknown' : `${file}:${line}`
}
