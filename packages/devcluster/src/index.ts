/** An in-process Kubernetes cluster. */
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
export * from './crd-checker.ts'
export { type Outcome, ReconcileLoop, type WorkQueue } from './controllers/loop/reconcile-loop.ts'
export { type DataDirectory, type DataDirectoryOptions, openDataDirectory } from './data-directory.ts'
export {
  type CloudSimulator,
  type DevCluster,
  type DevClusterOptions,
  type SimulatedCloud,
  type SimulatorParts,
  startDevCluster,
} from './dev-cluster.ts'
export type { KeptInstances, InstanceRecord } from './kept-instances.ts'
export { restoreObjects, type RestoredObject } from './restore.ts'
