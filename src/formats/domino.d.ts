/** The parts of domino's DOM that this folder uses. The package declares its types for another name. */
declare module '@mixmark-io/domino' {
  export interface PageElement {
    readonly nodeName: string
    readonly textContent: string
    readonly parentElement: PageElement | null
    readonly children: ArrayLike<PageElement>
    readonly firstElementChild: PageElement | null
    readonly nextElementSibling: PageElement | null
    querySelector(selector: string): PageElement | null
    querySelectorAll(selector: string): ArrayLike<PageElement>
    getAttribute(name: string): string | null
    remove(): void
  }

  export interface PageDocument extends PageElement {
    readonly title: string
    readonly body: PageElement | null
  }

  const domino: { createDocument(html: string): PageDocument }
  export default domino
}
