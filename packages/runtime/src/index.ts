export { type Clock, rfc3339, rfc3339Micro, SystemClock, sleepOn } from './clock.ts'
export { JsonLogger, type LogFields, type Logger, type LogLevel, Secret, silentLogger } from './log.ts'
export {
  integerBetween,
  type Random,
  randomString,
  SeededRandom,
  SystemRandom,
  unit,
  uuid,
} from './random.ts'
export {
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  oneChunk,
  readText,
  type Transport,
} from './transport.ts'
export { eventLoopTurns, inSlices, type Slicing, type Turns } from './turns.ts'
export { VirtualClock } from './virtual-clock.ts'
export { type HttpsOptions, type ListenOptions, serveHttp, serveHttps, type SocketServer } from './serve.ts'
