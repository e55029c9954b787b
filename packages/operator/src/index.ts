export { Operator, type OperatorDependencies } from './operator.ts'
export { metricsHandler, probesHandler } from './probes.ts'
export { defaultSettings, type Settings } from './settings.ts'
