//! stub
mod config; mod segment; mod stats;
pub use config::*; pub use segment::*; pub use stats::*;
pub type Time=u64;
#[derive(Clone,Copy,PartialEq,Eq,Debug)] pub enum State{SynSent,Established,Closed}
#[derive(Clone,Copy,PartialEq,Eq,Debug)] pub enum Failure{X}
pub struct Endpoint; 
impl Endpoint { pub fn client(_:&Config)->Self{todo!()} pub fn server(_:&Config)->Self{todo!()} pub fn connect(&mut self,_:&Config,_:u64){} pub fn write(&mut self,_:u64){} pub fn close(&mut self){} pub fn on_segment(&mut self,_:&Config,_:&Segment,_:bool,_:u64){} pub fn on_timer(&mut self,_:&Config,_:u64){} pub fn poll_transmit(&mut self,_:&Config,_:u64)->Option<Segment>{None} pub fn next_timer(&self)->Option<u64>{None} pub fn received(&self)->u64{0} pub fn state(&self)->State{State::Closed} pub fn stats(&self)->Stats{todo!()} pub fn failure(&self)->Option<Failure>{None} }
