export {
  type DecisionOptions,
  InlineDecider,
  type SchedulingDecider,
} from './decide/decider.ts'
export { ThreadDecider, type ThreadDeciderOptions } from './decide/thread-decider.ts'
export { Operator, type OperatorDependencies } from './operator.ts'
export { metricsHandler, probesHandler } from './probes.ts'
export { defaultSettings, defaultSpreadOf, type Settings } from './settings.ts'
