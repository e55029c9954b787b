/** Replaces names in records (ask.md 6). */
import type { Redactor } from '../snapshot/redact.ts'
import type { TraceRecord } from './records.ts'
import type { TraceSink } from './trace-file.ts'

type FlushedSink = TraceSink & { flush(): Promise<void> }

/** Wraps a sink and writes pseudonyms. The recorder replaces names of nodes itself, as it has to recognize them. */
export function redactedSink(sink: FlushedSink, redactor: Redactor): FlushedSink {
  return {
    write: (record) => {
      sink.write(redactedRecord(record, redactor))
    },
    flush: () => sink.flush(),
  }
}

function redactedRecord(record: TraceRecord, redactor: Redactor): TraceRecord {
  switch (record.kind) {
    case 'session':
      return { ...record, source: redactor.name(record.source) }
    case 'shape':
      return { ...record, pod: redactor.object(record.pod) }
    case 'podCame':
      return {
        ...record,
        name: redactor.name(record.name),
        ...(record.node !== undefined && { node: redactor.name(record.node) }),
      }
    case 'nodeCame':
      return { ...record, labels: redactor.labels(record.labels) }
    case 'object':
      return { ...record, object: redactor.object(record.object) }
    case 'objectGone':
      return {
        ...record,
        ...(record.namespace !== undefined && { namespace: redactor.name(record.namespace) }),
        name: redactor.name(record.name),
      }
    case 'catalogue':
      return { ...record, catalogues: record.catalogues.map((each) => redactor.catalogue(each)) }
    case 'podMoved':
    case 'podEnded':
    case 'nodeGone':
    case 'gap':
    case 'alive':
      return record
  }
}
