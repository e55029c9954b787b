/** HarbourNodeClass: what the servers of a NodePool are made from. */
import {
  type Cache,
  type Clock,
  ConditionSet,
  conditionsSchema,
  createController,
  crd,
  done,
  type KubeClient,
  type Logger,
  type NodeClass,
  objectSchema,
  type ReconcileResult,
  type ResourceType,
  textSchema,
} from '@tenon/provider'
import type { CloudApi } from './cloud-api.ts'

export interface HarbourNodeClass extends NodeClass {
  readonly spec: {
    /** Name of an image. */
    readonly image: string
  }
  readonly status?: NonNullable<NodeClass['status']> & {
    /** Id of the image that servers get now. */
    readonly imageID?: string
  }
}

/** The kind of {@link HarbourNodeClass}. */
export const harbourNodeClass: ResourceType<HarbourNodeClass> = {
  group: 'harbour.example.com',
  version: 'v1',
  kind: 'HarbourNodeClass',
  plural: 'harbournodeclasses',
  namespaced: false,
}

/** Its CustomResourceDefinition. */
export const harbourNodeClassCrd = crd({
  group: harbourNodeClass.group,
  version: harbourNodeClass.version,
  kind: harbourNodeClass.kind,
  plural: harbourNodeClass.plural,
  shortNames: ['hnc'],
  categories: ['karpenter'],
  columns: [
    { name: 'Image', type: 'string', jsonPath: '.spec.image' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  ],
  description: 'What the servers of a NodePool are made from.',
  spec: objectSchema(
    'What is wanted.',
    { image: textSchema('Name of the image of the servers.', { minLength: 1 }) },
    { required: ['image'] },
  ),
  status: objectSchema('What is.', {
    imageID: textSchema('Id of the image that servers get now.'),
    conditions: conditionsSchema(),
  }),
})

/** An image may get a new id under its name. */
const refreshMs = 5 * 60_000

export interface NodeClassDependencies {
  readonly api: CloudApi
  readonly kube: Pick<KubeClient, 'patch'>
  readonly nodeClasses: Cache<HarbourNodeClass>
  readonly clock: Clock
  readonly logger: Logger
}

/** Brings the status of one node class up to date. No NodePool launches a node before its node class is Ready. */
export async function reconcileNodeClass(
  { api, kube, nodeClasses, clock }: NodeClassDependencies,
  name: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const nodeClass = nodeClasses.get({ name })
  if (nodeClass === undefined || nodeClass.metadata.deletionTimestamp !== undefined) return done
  const image = (await api.images(signal)).find((each) => each.name === nodeClass.spec.image)
  const { conditions } = ConditionSet.of(nodeClass, { dependents: ['ImageReady'] }).set(
    image === undefined
      ? {
          type: 'ImageReady',
          status: 'False',
          reason: 'ImageNotFound',
          message: `there is no image "${nodeClass.spec.image}"; set spec.image to one of the cloud's`,
        }
      : { type: 'ImageReady', status: 'True' },
    clock.now(),
  )
  const status = { conditions, imageID: image?.id ?? null }
  await kube.patch(harbourNodeClass, { name }, { status }, { subresource: 'status', signal })
  return { kind: 'after', delayMs: refreshMs }
}

/** Reconciles each node class whenever it changes, until `signal` aborts. */
export function startNodeClassController(dependencies: NodeClassDependencies, signal: AbortSignal): void {
  const controller = createController(
    {
      name: 'harbour.nodeclass',
      concurrency: 1,
      reconcile: (name, stop) => reconcileNodeClass(dependencies, name, stop),
    },
    dependencies,
  )
  const unsubscribe = dependencies.nodeClasses.onChange((change) => {
    // Writes of its own to the status change no generation.
    const isNews =
      change.kind !== 'updated' || change.old.metadata.generation !== change.object.metadata.generation
    if (isNews) controller.enqueue(change.object.metadata.name)
  })
  signal.addEventListener('abort', () => {
    unsubscribe()
    void controller.stop()
  })
  controller.start()
}
