/** The provider for Clever Kubernetes Engine. */
export { builtInFlavors, type FlavorSize, sharedSize } from './catalogue/flavors.ts'
export { type PriceUnit, relativePrice } from './catalogue/prices.ts'
export { defaultRegion, ownNames, platformLabels } from './names.ts'
export { cleverNodeClassCrd } from './nodeclass/crd.ts'
export { type CleverNodeClass, cleverNodeClassKind } from './nodeclass/types.ts'
export { type NodeGroup, nodeGroupKind } from './nodegroup/types.ts'
export { openCleverCloud } from './open.ts'
