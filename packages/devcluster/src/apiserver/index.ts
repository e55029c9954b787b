/** The API server of the embedded cluster. */
export type { WebhookAnswer, WebhookCall } from './admission/webhook-calls.ts'
export { type KubeconfigOptions, kubeconfigYaml } from './http/kubeconfig.ts'
export { type ApiServer, type ApiServerOptions, createApiServer } from './http/server.ts'
export type { Endpoint } from './start-objects.ts'
export { createCredentials, type Credentials, isServerCertificateFor, type KeyPair } from './http/tls.ts'
export type { User } from './authentication/user.ts'
