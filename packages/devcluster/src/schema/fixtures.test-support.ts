import type { ResourceDefinition, StoredObject } from '../contract.ts'
import { builtinDefinitions } from './builtin-definitions.ts'

/** Test fixture: the definition of a built-in kind, by kind and group. */
export function builtin(kind: string, group?: string): ResourceDefinition {
  const found = builtinDefinitions().find(
    (one) => one.kind === kind && (group === undefined || one.group === group),
  )
  if (found === undefined) throw new Error(`no built-in kind ${kind}`)
  return found
}

/** Test fixture: a pod with one container. */
export function aPod(spec: object = {}, metadata: object = {}): StoredObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default', ...metadata },
    spec: { containers: [{ name: 'main', image: 'nginx:1.27' }], ...spec },
  }
}

/** Test fixture: a deployment whose selector matches its template. */
export function aDeployment(spec: object = {}): StoredObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app: 'web' } },
        spec: { containers: [{ name: 'main', image: 'nginx:1.27', ports: [{ containerPort: 80 }] }] },
      },
      ...spec,
    },
  }
}
