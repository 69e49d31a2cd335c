//! Container images made from a list of files, as OCI archives: no base image, no daemon and no registry. The same files
//! and the same settings always give the same bytes.

mod archive;
mod image;
mod reference;
mod root;
mod tar;

pub use image::Image;
pub use root::RootFileSystem;
