/** Requests for what no API server has, and how kube-apiserver 1.36.3 says so. */

/** `page`: in plain text, `status`: as a Status, `ok`: it is there, `refused`: not with this method. */
export type NothingThere = 'page' | 'status' | 'refused' | 'ok'

/** `requests` are of a kind that a CustomResourceDefinition serves. */
export const nothingThere: readonly (readonly [method: string, path: string, said: NothingThere])[] = [
  ['GET', '/apis/nobody.example.com', 'page'],
  ['GET', '/apis/nobody.example.com/v1', 'page'],
  ['GET', '/apis/nobody.example.com/v1/things', 'page'],
  ['GET', '/apis/nobody.example.com/v1/things?watch=true', 'page'],
  ['GET', '/apis/nobody.example.com/v1/namespaces/default/things/x', 'page'],
  ['POST', '/apis/nobody.example.com/v1/things', 'page'],
  ['DELETE', '/apis/nobody.example.com/v1/things/x', 'page'],
  ['GET', '/apis/metrics.k8s.io/v1beta1/nodes', 'page'],
  ['GET', '/apis/apps/v9', 'status'],
  ['GET', '/apis/apps/v9/deployments', 'status'],
  ['GET', '/apis/apps/v1/things?watch=true', 'status'],
  ['GET', '/apis/scheduling.k8s.io/v1beta1/podgroups', 'status'],
  ['GET', '/apis/scheduling.k8s.io/v1beta1/podgroups?watch=true', 'status'],
  ['GET', '/api/v2', 'status'],
  ['GET', '/api/v1/things', 'status'],
  ['GET', '/api/v1/a/b/c/d/e/f', 'status'],
  ['GET', '/apis/a/b/c/d/e/f/g/h/i', 'page'],
  ['GET', '/apis/apps/v1/deployments/x', 'status'],
  ['GET', '/api/v1/namespaces/default/nodes', 'status'],
  ['POST', '/apis/apps/v1/deployments', 'refused'],
  ['DELETE', '/apis/apps/v1/deployments', 'refused'],
  ['GET', '/apis/autoscaling.x-k8s.io/v1', 'ok'],
  ['GET', '/apis/autoscaling.x-k8s.io/v1/provisioningrequests', 'ok'],
  ['GET', '/apis/autoscaling.x-k8s.io/v9', 'page'],
  ['GET', '/apis/autoscaling.x-k8s.io/v9/provisioningrequests', 'page'],
  ['GET', '/apis/autoscaling.x-k8s.io/v9/provisioningrequests?watch=true', 'page'],
  ['GET', '/apis/autoscaling.x-k8s.io/v1/nothings', 'page'],
  ['GET', '/apis/autoscaling.x-k8s.io/v1/provisioningrequests/x', 'page'],
  ['POST', '/apis/autoscaling.x-k8s.io/v1/provisioningrequests', 'page'],
  ['DELETE', '/apis/autoscaling.x-k8s.io/v1/provisioningrequests', 'page'],
  ['PUT', '/apis/autoscaling.x-k8s.io/v1/provisioningrequests', 'page'],
  ['GET', '/nothing', 'page'],
  ['GET', '/openapi/v4', 'page'],
  ['GET', '/healthz/ping', 'ok'],
  ['GET', '/healthz/nothing', 'page'],
  ['GET', '/readyz/nothing', 'page'],
  ['GET', '/.well-known/nothing', 'page'],
  ['GET', '/openid/v1/nothing', 'page'],
  ['GET', '/version/nothing', 'status'],
]

/** What a server said, in one of these words. */
export function saidOf({ status, body }: { readonly status: number; readonly body: unknown }): string {
  const { kind, message } = (typeof body === 'object' && body !== null ? body : { message: body }) as {
    readonly kind?: unknown
    readonly message?: unknown
  }
  if (status === 404 && kind === undefined && message === '404 page not found\n') return 'page'
  if (status === 404 && kind === 'Status' && message === 'the server could not find the requested resource')
    return 'status'
  if (status === 405 && kind === 'Status') return 'refused'
  return status === 200 ? 'ok' : `${status} ${JSON.stringify(body)}`
}
