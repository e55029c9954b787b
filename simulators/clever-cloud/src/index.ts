/** The simulated Clever Kubernetes Engine. */
export {
  type CleverCloud,
  type CleverCloudCluster,
  type CleverCloudOptions,
  cleverCloudSimulator,
  type GroupSnapshot,
  startCleverCloud,
} from './clever-cloud.ts'
export { type ControlPlane, inside, outside } from './control-plane.ts'
export type { ApiEffect, ApiFault, ApiVerb, GroupEffect, GroupFault } from './faults.ts'
export { platformFinalizer } from './platform.ts'
export { nodeGroupCrd } from './platform-crd.ts'
export { simulator } from './provider-simulator.ts'
export type { RecordedCall } from './requests.ts'
export type { CleverCloudSettings, DelayRange, QuotaAmount } from './settings.ts'
