import { type Clock, JsonLogger, type Logger, openLogOutputs } from '@tenon/runtime'
import type { LogOptions, LogSeverity } from '../options/process-options.ts'
import { TextLogger, type WriteLine } from './text-logger.ts'

export interface AutoscalerLogs {
  readonly logger: Logger
  close(): void
}

/** Debug lines are written from this verbosity on. */
const verboseFrom = 3
const order: readonly LogSeverity[] = ['INFO', 'WARNING', 'ERROR', 'FATAL']

/**
 * Opens the log.
 * @throws Error that names the file if it cannot be opened.
 */
export function openLogs(options: LogOptions, clock: Clock, err: (text: string) => void): AutoscalerLogs {
  const file = options.file === '' ? undefined : openLogOutputs(options.file, { out: err, err })
  const write: WriteLine = (line, severity) => {
    file?.write(line)
    if (order.indexOf(severity) >= order.indexOf(options.standardErrorFrom)) err(line)
  }
  const isVerbose = options.verbosity >= verboseFrom
  const logger =
    options.format === 'text'
      ? new TextLogger(clock, write, isVerbose)
      : new JsonLogger(
          clock,
          (line) => write(line, severityOf(line)),
          { value: isVerbose ? 'debug' : 'info' },
          {
            name: 'cluster-autoscaler',
            onBroken: err,
          },
        )
  return { logger, close: () => file?.close() }
}

/** The severity of a JSON line, which begins with its level. */
function severityOf(line: string): LogSeverity {
  if (line.startsWith('{"level":"ERROR"')) return 'ERROR'
  return line.startsWith('{"level":"WARN"') ? 'WARNING' : 'INFO'
}
