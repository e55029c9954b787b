/** The simulated Exoscale cloud. */
export type { InstanceState } from './instance.ts'
export { createExoscale, type Exoscale, type ExoscaleOptions } from './exoscale.ts'
export type { FaultEffect, FaultRule, Faults } from './faults.ts'
export type { RecordedCall } from './handler.ts'
export { type HttpOptions, type HttpServer, serveHttp } from './serve-http.ts'
export type { DelayRange, ExoscaleSettings } from './settings.ts'
export type { CloudSnapshot, InstanceSnapshot } from './snapshot.ts'
export type { ExoscaleSeed, TemplateSeed } from './world.ts'
