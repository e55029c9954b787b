/** The API server of the embedded cluster. */
export type { User } from './authentication.ts'
export { type KubeconfigOptions, kubeconfigYaml } from './kubeconfig.ts'
export { type ApiServer, type ApiServerOptions, createApiServer } from './server.ts'
export type { Endpoint } from './start-objects.ts'
export { createCredentials, type Credentials, isServerCertificateFor, type KeyPair } from './tls.ts'
