/** The provider for clusters whose machines Cluster API manages. */
export { clusterAPINodeClassCrd } from './nodeclass/crd.ts'
export { capacityAnnotations, type ClusterApiNames, defaultGroup, namesOf, ownNames } from './names.ts'
export { type ClusterAPINodeClass, clusterAPINodeClassKind } from './node-class.ts'
export {
  type Cluster,
  kindsOf,
  type Machine,
  type MachineDeployment,
  type MachineSet,
  type MachineTemplate,
  type ServedVersion,
} from './objects.ts'
export { openClusterApi } from './open.ts'
