/** Folder, file and line of a frame, without the URL's query. */
const place = /([^/\\]+[/\\][^/\\?:]+)(?:\?[^:]*)?:(\d+):\d+\)?$/

/**
 * Where the function was called that is `above` frames above the caller of this one, as `folder/file:line`.
 * It reads the stack, which takes some microseconds.
 */
export function callerOf(above: number): string {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = above + 2
  const { stack = '' } = new Error('where')
  Error.stackTraceLimit = limit
  const [, file, line] = place.exec(stack.split('\n')[above + 2] ?? '') ?? []
  return file === undefined ? 'unknown' : `${file}:${line}`
}
