import { accepted, type FlagGroup, withoutEffect, working } from '../flag.ts'

export const statusFlags: FlagGroup = {
  title: 'Status, events, metrics',
  flags: working(
    ['address', 'text', ':8085', 'where metrics and the health check are served'],
    ['write-status-configmap', 'boolean', 'true', 'tell the state in a ConfigMap, with events on it'],
    ['status-config-map-name', 'text', 'cluster-autoscaler-status', 'name of that ConfigMap'],
    ['max-inactivity', 'duration', '10m', 'unhealthy when no loop began for so long'],
    ['max-failing-time', 'duration', '15m', 'unhealthy when no loop succeeded for so long'],
    ['max-startup-time', 'duration', '20m', 'both of these until the first success'],
    ['emit-per-nodegroup-metrics', 'boolean', 'false', 'metrics of each group'],
    ['record-duplicated-events', 'boolean', 'false', 'record the same event more than once in five minutes'],
    ['debugging-snapshot-enabled', 'boolean', 'false', 'serve /snapshotz'],
    ['profiling', 'boolean', 'false', 'serve /debug/pprof'],
  ),
}

export const logFlags: FlagGroup = {
  title: 'Logs',
  flags: [
    ...working(
      ['v', 'integer', '0', 'how much is logged: debug from 3 on'],
      ['logging-format', 'text', 'text', 'text or json'],
      ['logtostderr', 'boolean', 'true', 'log to standard error instead of files'],
      ['alsologtostderr', 'boolean', 'false', 'log to standard error as well as to files'],
      ['alsologtostderrthreshold', 'text', 'INFO', 'least severity that --alsologtostderr writes'],
      ['stderrthreshold', 'text', 'INFO', 'least severity on standard error while a file is written'],
      ['log-file', 'text', '', 'file to log to without --logtostderr'],
    ),
    ...accepted(
      ['scheduler-verbosity', 'integer', '0', 'the filters of the scheduler do not log'],
      ['add-dir-header', 'boolean', 'false', 'of another logger'],
      ['log-backtrace-at', 'text', '', 'of another logger'],
      ['log-dir', 'text', '', 'see --log-file'],
      ['log-file-max-size', 'integer', '1800', 'files grow as they will'],
      ['log-flush-frequency', 'duration', '5s', 'lines are written at once'],
      ['log-json-info-buffer-size', 'text', '', 'of another logger'],
      ['log-json-split-stream', 'boolean', 'false', 'of another logger'],
      ['log-text-info-buffer-size', 'text', '', 'of another logger'],
      ['log-text-split-stream', 'boolean', 'false', 'of another logger'],
      ['one-output', 'boolean', 'false', 'of another logger'],
      ['skip-headers', 'boolean', 'false', 'of another logger'],
      ['skip-log-headers', 'boolean', 'false', 'of another logger'],
      ['vmodule', 'text', '', 'of another logger'],
      ['legacy-stderr-threshold-behavior', 'boolean', 'false', 'of another logger'],
    ),
    ...withoutEffect(['feature-gates', 'texts', '', 'there are none']),
  ],
}
