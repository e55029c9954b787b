/** A cluster with ProvisioningRequests, in memory and on virtual time. */
import {
  type Condition,
  conditionOf,
  type PodTemplateSpec,
  provisioningClasses,
  type ProvisioningRequest,
  type RequestClass,
} from '@tenon/api'
import { defaultOptions, type RequestOptions } from '../options/options.ts'
import { type ClusterScene, FakeCluster } from '../testing/fake-cluster.test-support.ts'

export interface RequestFields {
  readonly class?: RequestClass
  /** In place of the name of {@link class}. */
  readonly className?: string
  readonly count?: number
  readonly cpu?: string
  readonly parameters?: Readonly<Record<string, string>>
  /** Names of PodTemplates; by default one of the request's name, which is made. */
  readonly templates?: readonly string[]
  readonly conditions?: readonly Condition[]
}

export class RequestStage extends FakeCluster {
  #made = 0

  constructor({ options = {}, ...scene }: ClusterScene, requests: Partial<RequestOptions> = {}) {
    super({
      ...scene,
      options: { ...options, requests: { ...defaultOptions.requests, isEnabled: true, ...requests } },
    })
  }

  template(name: string, cpu: string, more: Partial<PodTemplateSpec['spec']> = {}): void {
    this.podTemplates.set(name, {
      apiVersion: 'v1',
      kind: 'PodTemplate',
      metadata: { name, namespace: 'default', uid: `uid-template-${name}` },
      template: {
        metadata: { labels: { app: name } },
        spec: { containers: [{ name: 'main', image: 'x', resources: { requests: { cpu } } }], ...more },
      },
    })
  }

  request(name: string, fields: RequestFields = {}): void {
    const { class: of = 'atomic', className = provisioningClasses[of], count = 1, cpu = '3' } = fields
    const { templates = [name], parameters, conditions } = fields
    if (fields.templates === undefined) this.template(name, cpu)
    this.#made++
    this.requests.set(name, {
      apiVersion: 'autoscaling.x-k8s.io/v1',
      kind: 'ProvisioningRequest',
      metadata: {
        name,
        namespace: 'default',
        uid: `uid-request-${name}-${this.#made}`,
        resourceVersion: '1',
        generation: 1,
        creationTimestamp: new Date(this.clock.now()).toISOString(),
      },
      spec: {
        provisioningClassName: className,
        podSets: templates.map((template) => ({ podTemplateRef: { name: template }, count })),
        ...(parameters && { parameters }),
      },
      ...(conditions && { status: { conditions } }),
    })
  }

  now(name: string): ProvisioningRequest | undefined {
    return this.requests.get(name)
  }

  /** `Status/Reason` of a condition, or `absent`. */
  state(name: string, type: string): string {
    const found = this.requests.get(name)
    const condition = found && conditionOf(found, type)
    return condition === undefined ? 'absent' : `${condition.status}/${condition.reason}`
  }

  message(name: string, type: string): string {
    const found = this.requests.get(name)
    return (found && conditionOf(found, type)?.message) ?? ''
  }
}

/** Annotations of a pod made for the room of a request, as Kueue gives them. */
export function consuming(name: string, of: RequestClass = 'atomic'): Readonly<Record<string, string>> {
  return {
    'autoscaling.x-k8s.io/consume-provisioning-request': name,
    'autoscaling.x-k8s.io/provisioning-class-name': provisioningClasses[of],
  }
}
