/** What plays clusters on virtual time; the embedded cluster is loaded with it. */
export { runCase } from './cases/run.ts'
export { replay } from './trace/replay.ts'
export { defaultPlayTimes, Play } from './play/play.ts'
export { playSnapshot } from './play/play-snapshot.ts'
