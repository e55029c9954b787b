/** An in-process Kubernetes cluster and simulated clouds. */
export {
  type ApiServer,
  type ApiServerOptions,
  createApiServer,
  createCredentials,
  type Credentials,
  type Endpoint,
  isServerCertificateFor,
  type KeyPair,
  kubeconfigYaml,
  type KubeconfigOptions,
  type User,
  type WebhookAnswer,
  type WebhookCall,
} from './apiserver/index.ts'
export * from './contract.ts'
export { type DataDirectory, type DataDirectoryOptions, openDataDirectory } from './data-directory.ts'
export { type DevCluster, type DevClusterOptions, startDevCluster } from './dev-cluster.ts'
export {
  createExoscale,
  type Exoscale,
  type ExoscaleSettings,
  exoscaleInstanceTypes,
  exoscalePricePerHour,
  exoscaleZones,
} from './exoscale/index.ts'
export { schedulingVerdicts } from './scheduler/verdict.ts'
export {
  type CheckedCustomResource,
  type CrdChecker,
  createCrdChecker,
  fieldErrorText,
} from './schema/index.ts'
