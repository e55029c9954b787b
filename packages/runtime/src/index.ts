export { DocumentBody, DocumentStream } from './documents.ts'
export { type Clock, processMonotonic, rfc3339, rfc3339Micro, SystemClock, sleepOn } from './clock.ts'
export { type LogFields, type Logger, type LogLevel, Secret, silentLogger, StructuredError } from './log.ts'
export { Listeners } from './listeners.ts'
export { messageOf } from './message-of.ts'
export { durationText, JsonLogger, type JsonLoggerOptions } from './log-json.ts'
export { currentTrace, inLogScope, inTrace, traceFields, type TraceContext } from './scope.ts'
export { type LogOutputs, openLogOutputs } from './log-outputs.ts'
export { perObject } from './per-object.ts'
export {
  integerBetween,
  type Random,
  randomString,
  SeededRandom,
  SystemRandom,
  unit,
  uuid,
} from './random.ts'
export { Tally } from './tally.ts'
export {
  createTracer,
  type FinishedSpan,
  parseTraceparent,
  type Span,
  type SpanAttributes,
  traced,
  tracedTransport,
  traceparentOf,
  type Tracer,
} from './tracing.ts'
export {
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  oneChunk,
  readText,
  type Transport,
} from './transport.ts'
export type { Runtime } from './runtime.ts'
export { eventLoopTurns, inSlices, type Slicing, type Turns } from './turns.ts'
export { inTurns, jsonParts } from './json-parts.ts'
export { VirtualClock } from './virtual-clock.ts'
export {
  type Guard,
  type HttpsOptions,
  type ListenOptions,
  serveHttp,
  serveHttps,
  type SecureServer,
  type ServedCertificate,
  type SocketServer,
} from './serve.ts'
export {
  type AnswerCheck,
  headFault,
  isFullText,
  isJsonFields,
  isJsonType,
  type JsonFields,
} from './json-answers.ts'
